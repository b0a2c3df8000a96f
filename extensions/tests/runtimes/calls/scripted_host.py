"""A process of a runtime that does what the test says, frame by frame; no test code of the host's is in it."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import orjson

from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.extensions.runtimes.service.control import Operation, RuntimeControl, serving_control
from opensearch_ml_stream.extensions.runtimes.service.engine_calls import EngineCalls
from opensearch_ml_stream.extensions.runtimes.service.runtime_calls import STREAM_PATH, RuntimeCalls
from opensearch_ml_stream.extensions.runtimes.service.runtime_models import RuntimeModels
from opensearch_ml_stream.extensions.runtimes.service.runtime_protocol import RuntimeProtocol
from opensearch_ml_stream.extensions.runtimes.service.runtime_response import RuntimeResponse
from opensearch_ml_stream.extensions.runtimes.service.status import (
    STATUS_FILE,
    ModelStatus,
    ProcessStatus,
    write_status,
)
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.plugin.upstream import UpstreamResponse
from opensearch_ml_stream.runtimes.frames import FrameParser, Kind, frame

REQUEST = b'{"inputs":[]}'
READ = (Kind.READ, b"")


class Frame(NamedTuple):
    """A frame that a worker has sent, and the connection it came over."""

    call: int
    kind: int
    payload: bytes
    worker: asyncio.StreamWriter

    def reply(self, *frames: tuple[Kind, bytes]) -> None:
        """Send frames of this call, all in one write."""
        self.worker.write(b"".join([frame(self.call, kind, payload) for kind, payload in frames]))

    def data(self, *payloads: bytes) -> None:
        """Send responses of this call, all in one write."""
        self.reply(*((Kind.DATA, payload) for payload in payloads))


class ScriptedHost:
    """Listens on a Unix socket; what workers send is read with `next_frame`."""

    def __init__(self, path: Path, *, reads: bool = True) -> None:
        self.path = path
        self._reads = reads
        self.workers: list[asyncio.StreamWriter] = []
        self.connected = asyncio.Event()
        self._frames: asyncio.Queue[Frame] = asyncio.Queue()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> "ScriptedHost":
        self._server = await asyncio.start_unix_server(self._serve, self.path)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.die()

    async def next_frame(self) -> Frame:
        """The next frame of any worker."""
        return await asyncio.wait_for(self._frames.get(), 10)

    async def next_call(self) -> Frame:
        """The next frame, which begins a call; of a stream also the end of its input is read."""
        begin = await self.next_frame()
        assert begin.kind in (Kind.PREDICT, Kind.STREAM)
        if begin.kind == Kind.STREAM:
            end = await self.next_frame()
            assert end[:3] == (begin.call, Kind.INPUT_END, b"")
        return begin

    async def die(self) -> None:
        """Close everything at once, as a process that is killed does."""
        assert self._server is not None
        self._server.close()
        for worker in self.workers:
            worker.transport.abort()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=10)
        self.path.unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self.workers.append(writer)
        self.connected.set()
        parser = FrameParser()
        if not self._reads:
            writer.transport.pause_reading()  # type: ignore[attr-defined]
        try:
            while data := await reader.read(65_536):
                for call, kind, payload in parser.feed(data):
                    self._frames.put_nowait(Frame(call, kind, payload, writer))
        except ConnectionError:
            pass
        finally:
            writer.close()


class Client:
    """Gives the requests that the test puts; None ends them, an error is raised."""

    def __init__(self) -> None:
        self.requests: asyncio.Queue[bytes | Exception | None] = asyncio.Queue()
        self.asked = 0
        self.waits = asyncio.Event()
        self.left = asyncio.Event()

    async def next(self) -> bytes | None:
        self.asked += 1
        self.waits.set()
        try:
            request = await self.requests.get()
        except asyncio.CancelledError:
            self.left.set()
            raise
        if isinstance(request, Exception):
            raise request
        return request


@dataclass
class Sink:
    """Takes what comes, and wants no more once it has `enough` bytes."""

    enough: int = 2**31
    taken: list[bytes] = field(default_factory=list)
    came: asyncio.Event = field(default_factory=asyncio.Event)

    def __call__(self, data: bytes) -> bool:
        self.taken.append(data)
        self.came.set()
        return sum(map(len, self.taken)) < self.enough

    async def next(self) -> bytes:
        await asyncio.wait_for(self.came.wait(), 10)
        self.came.clear()
        return self.taken[-1]


def write_models(folder: Path, **hosts: Sequence[ScriptedHost]) -> None:
    """Write that these models are ready, each with these processes."""
    ready = {
        name: [ProcessStatus(str(host.path), pid=1, ready=True) for host in processes]
        for name, processes in hosts.items()
    }
    write_status(
        folder / STATUS_FILE,
        {
            name: ModelStatus("READY", model_id=f"runtime-{name}", processes=processes)
            for name, processes in ready.items()
        },
    )


@asynccontextmanager
async def opened_protocol(folder: Path) -> AsyncIterator[RuntimeProtocol]:
    """The protocol of the models whose status is in the folder, beside a keeper that has nothing to do."""

    async def obey(operation: Operation, name: str) -> None:
        """All models are as they are to be."""

    models = RuntimeModels(folder)
    async with (
        RuntimeCalls(models) as calls,
        EngineCalls(models, Settings()) as engine_calls,
        serving_control(folder, obey),
    ):
        yield RuntimeProtocol(calls, engine_calls, RuntimeControl(folder))


def request_to(model: str = "m", path: str = STREAM_PATH, body: bytes = REQUEST) -> ProviderRequest:
    return ProviderRequest("POST", f"runtime://{model}{path}", {}, body)


def predict_request(model: str = "m") -> ProviderRequest:
    return request_to(model, "/predict")


@asynccontextmanager
async def opened_stream(
    calls: RuntimeCalls, host: ScriptedHost, first: bytes = b"{}"
) -> AsyncIterator[tuple[RuntimeResponse, Frame]]:
    """A stream whose first response has come and was read; the response, and the host's side of the call."""
    opening = calls.open(request_to())
    entering = asyncio.ensure_future(opening.__aenter__())
    begin = await host.next_call()
    begin.data(first)
    response = await entering
    assert isinstance(response, RuntimeResponse)
    error: BaseException | None = None
    try:
        assert await response.read() == first + b"\0"
        yield response, begin
    except BaseException as raised:
        error = raised
        raise
    finally:
        await opening.__aexit__(None if error is None else type(error), error, None)


async def read_to_end(response: UpstreamResponse) -> bytes:
    parts = []
    while data := await response.read():
        parts.append(data)
    return b"".join(parts)


async def predict(calls: RuntimeCalls, model: str = "m") -> bytes:
    async with calls.open(predict_request(model)) as response:
        return await read_to_end(response)


def error_payload(status: int, kind: str = "ValueError", reason: str = "too long", *, is_own: bool = False) -> bytes:
    content: dict[str, Any] = {"status": status, "is_own": is_own, "type": kind, "reason": reason}
    return orjson.dumps(content)
