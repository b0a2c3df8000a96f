"""Further requests: those of one stream behind its first, sent to the model's process while responses come back."""

import asyncio

from opensearch_ml_stream.extensions.runtimes.service import runtime_errors
from opensearch_ml_stream.extensions.runtimes.service.runtime_response import RuntimeResponse
from opensearch_ml_stream.plugin.connector_protocol import NextRequest
from opensearch_ml_stream.runtimes.frames import MAX_PAYLOAD


class FurtherRequests:
    """Fetches a request whenever the model waits for one, and not before: a client that is faster has to wait.

    An error in place of a request ends the stream with it, and the model's work.
    """

    __slots__ = ("_asked", "_fetch", "_model", "_task")

    def __init__(self, model: str, fetch: NextRequest) -> None:
        self._model = model
        self._fetch = fetch
        self._asked = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def ask(self) -> None:
        """Note that the model waits for a request."""
        self._asked.set()

    def start(self, response: RuntimeResponse) -> None:
        """Serve the call of that response from now on."""

        def ended(task: asyncio.Task[None]) -> None:
            if not task.cancelled() and isinstance(error := task.exception(), Exception):
                response.fail(error)

        self._task = asyncio.get_running_loop().create_task(self._serve(response))
        self._task.add_done_callback(ended)

    async def stop(self) -> None:
        """Fetch no more; return when nothing of it goes on."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def _serve(self, response: RuntimeResponse) -> None:
        while True:
            await self._asked.wait()
            self._asked.clear()
            body = await self._fetch()
            if body is not None and len(body) > MAX_PAYLOAD:
                raise runtime_errors.too_large(self._model, len(body))
            response.send_request(body)
            if body is None:
                return
