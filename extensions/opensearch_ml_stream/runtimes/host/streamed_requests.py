"""The requests of one stream, as `predict_stream` iterates them."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

from opensearch_ml_stream.runtimes.host.served_model import ServedModel


class StreamedRequests:
    """An async iterator: the first request at once, the others as they come, until the worker sends no more.

    `ask` is called once for each further request that is waited for, before it has come. All have the identifier of
    the first, as in MLServer. MalformedRequest out of the iteration for what is no request.
    """

    def __init__(self, model: ServedModel, payload: bytes, ask: Callable[[], None]) -> None:
        self._model = model
        self._first: Any = None
        self._identifier: str | None = None
        self._payloads = deque([payload])
        self._ask = ask
        self._has_asked = False
        self._ended = False
        self._changed: asyncio.Future[None] | None = None

    def begin(self) -> str:
        """Decode the first request and return its identifier. MalformedRequest if it is none."""
        self._first = self._model.decode(self._payloads.popleft())
        identifier: str = self._first.id
        self._identifier = identifier
        return identifier

    def add(self, payload: bytes) -> None:
        """Take one more request."""
        self._payloads.append(payload)
        self._has_asked = False
        self._wake()

    def end(self) -> None:
        """End the iteration behind what has come."""
        self._ended = True
        self._wake()

    def _wake(self) -> None:
        if self._changed is not None and not self._changed.done():
            self._changed.set_result(None)

    def __aiter__(self) -> "StreamedRequests":
        return self

    async def __anext__(self) -> Any:
        if self._first is not None:
            request, self._first = self._first, None
            return request
        while not self._payloads:
            if self._ended:
                raise StopAsyncIteration
            if not self._has_asked:
                self._has_asked = True
                self._ask()
            self._changed = asyncio.get_running_loop().create_future()
            await self._changed
        return self._model.decode(self._payloads.popleft(), self._identifier)

    async def aclose(self) -> None:
        """End the iteration, as that of the async generator that MLServer passes."""
        self._first = None
        self._payloads.clear()
        self.end()
