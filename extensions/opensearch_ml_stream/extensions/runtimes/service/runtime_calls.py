"""A worker's calls of the processes of runtime models."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from random import random
from types import TracebackType

from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.extensions.runtimes.protocol.runtime_urls import runtime_name
from opensearch_ml_stream.extensions.runtimes.service import runtime_errors
from opensearch_ml_stream.extensions.runtimes.service.runtime_connection import RuntimeConnection
from opensearch_ml_stream.extensions.runtimes.service.runtime_models import RuntimeModels
from opensearch_ml_stream.extensions.runtimes.service.runtime_response import RuntimeResponse
from opensearch_ml_stream.plugin.connector_protocol import NextRequest
from opensearch_ml_stream.plugin.upstream import UpstreamResponse
from opensearch_ml_stream.runtimes.frames import MAX_PAYLOAD, Kind


class FurtherRequests:
    """Fetches the further requests of a stream, each when the model waits for one: a faster client has to wait.

    An error in place of a request ends the stream and the model's work.
    """

    __slots__ = ("_asked", "_fetch", "_model", "_task")

    def __init__(self, model: str, fetch: NextRequest) -> None:
        self._model = model
        self._fetch = fetch
        self._asked = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def ask(self) -> None:
        """Record that the model waits for a request."""
        self._asked.set()

    def start(self, response: RuntimeResponse) -> None:
        """Begin to fetch requests for the call of that response."""

        def ended(task: asyncio.Task[None]) -> None:
            if not task.cancelled() and isinstance(error := task.exception(), Exception):
                response.fail(error)

        self._task = asyncio.get_running_loop().create_task(self._serve(response))
        self._task.add_done_callback(ended)

    async def stop(self) -> None:
        """Stop fetching; return when that has ended."""
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


STREAM_PATH = "/predict_stream"  # behind the name in the URL of a request for a stream


class RuntimeCalls(AbstractAsyncContextManager["RuntimeCalls"]):
    """The calls of one worker; leaving it closes its connections."""

    def __init__(self, models: RuntimeModels) -> None:
        self.models = models
        self._processes: dict[str, _Process] = {}  # by socket

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for process in self._processes.values():
            process.close()

    def open(
        self, request: ProviderRequest, further: NextRequest | None = None
    ) -> AbstractAsyncContextManager[UpstreamResponse]:
        """Call the model of a runtime's URL, and wait for its first response. Leaving the context early cancels it.

        The body is the response in JSON; in a stream SEPARATOR follows each response. `further` is called for a
        stream's next request when the model waits for one; an error that it raises ends the response.

        NotFound if there is no such model, Unavailable while it is loading, Throttled (429) if its process has left
        MAX_UNREAD bytes of requests unread, UpstreamError if the process ends. For an error that the model raises:
        RaisedByModel if it has a status, else UpstreamError.
        """
        kind = Kind.STREAM if request.url.endswith(STREAM_PATH) else Kind.PREDICT
        return _Call(self, runtime_name(request.url), kind, request.body, further)

    def handle(self, model: str, message: bytes) -> AbstractAsyncContextManager[UpstreamResponse]:
        """Call a custom handler of the model, as `open` does. Request and body are messages in the format of frames."""
        return _Call(self, model, Kind.HANDLE, message)

    def processes(self, model: str) -> "Sequence[_Process]":
        """Return the callable processes, those with the fewest calls of this worker first."""
        ready = self.models.callable_sockets(model)
        if len(ready) == 1:
            return (self._process(model, ready[0]),)
        # At random among equals, since other workers choose, too.
        return sorted((self._process(model, socket) for socket in ready), key=lambda process: (process.calls, random()))

    def unreachable(self, model: str, error: OSError) -> MLStreamError:
        """Return the error for processes that cannot be connected to, or the error of a call now, if it has another."""
        try:
            self.models.callable_sockets(model)
        except MLStreamError as known:
            return known
        return runtime_errors.unreachable(model, error)

    def _process(self, model: str, socket: str) -> "_Process":
        process = self._processes.get(socket)
        if process is None:
            self._forget_ended()
            process = self._processes[socket] = _Process(model, socket, partial(self.models.is_unloaded, model))
        return process

    def _forget_ended(self) -> None:
        models = self.models.current().values()
        present = {process.socket for model in models for process in model.processes}
        for socket, process in tuple(self._processes.items()):
            if socket not in present and not process.calls:
                process.close()
                del self._processes[socket]


class _Process:
    """A process, the worker's connection to it, and how many calls of the worker it has."""

    __slots__ = ("_connection", "_is_unloaded", "_opening", "_socket", "calls", "model")

    def __init__(self, model: str, socket: str, is_unloaded: Callable[[], bool]) -> None:
        self.model = model
        self._is_unloaded = is_unloaded
        self.calls = 0
        self._socket = socket
        self._connection: RuntimeConnection | None = None
        self._opening = asyncio.Lock()

    async def connection(self) -> RuntimeConnection:
        """Return the open connection, opened if there is none; OSError if it cannot be."""
        if self._connection is None or not self._connection.is_usable:
            async with self._opening:
                if self._connection is None or not self._connection.is_usable:
                    self._connection = await self._open()
        return self._connection

    async def _open(self) -> RuntimeConnection:
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_unix_connection(
            lambda: RuntimeConnection(self.model, self._lost, self._is_unloaded), self._socket
        )
        return connection

    def _lost(self, connection: RuntimeConnection) -> None:
        if self._connection is connection:
            self._connection = None

    def close(self) -> None:
        """Close the connection, which ends its calls."""
        if self._connection is not None:
            self._connection.abort()


class _Call(AbstractAsyncContextManager[UpstreamResponse]):
    """One call, which is counted and released exactly once, whatever happens."""

    __slots__ = ("_body", "_calls", "_connection", "_further", "_kind", "_model", "_number", "_process")

    def __init__(
        self, calls: RuntimeCalls, model: str, kind: Kind, body: bytes, further: NextRequest | None = None
    ) -> None:
        self._calls = calls
        self._model = model
        self._body = body
        self._kind = kind
        self._process: _Process | None = None
        self._connection: RuntimeConnection | None = None
        self._further = None if further is None else FurtherRequests(model, further)

    async def __aenter__(self) -> UpstreamResponse:
        body, self._body = self._body, b""  # a prompt may be large, and its response long
        if len(body) > MAX_PAYLOAD:
            raise runtime_errors.too_large(self._model, len(body))
        processes = self._calls.processes(self._model)
        try:
            connection = await self._connect(processes)
            response: RuntimeResponse
            asked = None if self._further is None else self._further.ask
            self._number, response = connection.begin(self._kind, body, asked)
            self._connection = connection
            del body
            if self._further is not None:
                self._further.start(response)
            await response.begun()
            return response
        except BaseException:
            await self._leave()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._leave()

    async def _connect(self, processes: Iterable[_Process]) -> RuntimeConnection:
        """Return the connection to the first reachable process; nothing was sent to the others."""
        failure: OSError | None = None
        for process in processes:
            self._count(process)
            try:
                return await process.connection()
            except OSError as error:
                failure = error
        assert failure is not None, "there is one process at least"
        raise self._calls.unreachable(self._model, failure)

    def _count(self, process: _Process | None) -> None:
        """Count the call for this process only."""
        if self._process is not None:
            self._process.calls -= 1
        self._process = process
        if process is not None:
            process.calls += 1

    async def _leave(self) -> None:
        self._count(None)
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.leave(self._number)
        if self._further is not None:
            await self._further.stop()
