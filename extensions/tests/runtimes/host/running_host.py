"""A host process on a folder of the test, and what a worker and the keeper do with it."""

import asyncio
import json
import os
import socket
import sys
import textwrap
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from opensearch_ml_stream.runtimes import frames
from opensearch_ml_stream.runtimes.frames import CREDIT, FrameParser, Kind, frame

PYTHON = os.environ.get("HOST_PYTHON", sys.executable)
HOST = Path(frames.__file__).with_name("__main__.py")
END_OF_CALL = (Kind.END, Kind.ERROR)
PREAMBLE = """
import asyncio, os, sys, time
from mlserver import MLModel
from mlserver.types import InferenceRequest, InferenceResponse, Parameters, ResponseOutput

def text_response(*texts, **fields):
    output = ResponseOutput(name="text", datatype="BYTES", shape=[len(texts)], data=list(texts))
    return InferenceResponse(model_name="", outputs=[output], **fields)

def texts_of(request):
    return list(request.inputs[0].data)
"""


def text_request(*texts: str, **fields: Any) -> bytes:
    tensor = {"name": "text", "datatype": "BYTES", "shape": [len(texts)], "data": list(texts)}
    return json.dumps({"inputs": [tensor], **fields}).encode()


def texts_of(payload: bytes) -> list[str]:
    texts: list[str] = json.loads(payload)["outputs"][0]["data"]
    return texts


class Frame(NamedTuple):
    kind: int
    payload: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.payload)


class WorkerSide:
    """A connection to the host; every call's frames are kept apart, `reads` counts those that ask for a request.

    Frames that are sent without a wait between them go out in one write.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._unwritten: list[bytes] = []
        self.reads: Counter[int] = Counter()  # by call
        self._numbers = count(1)
        self._frames: dict[int, asyncio.Queue[Frame | None]] = {}
        self._reading = asyncio.create_task(self._read(reader))

    async def _read(self, reader: asyncio.StreamReader) -> None:
        parser = FrameParser()
        with suppress(ConnectionError):  # as it ends where the host had not read the last credit
            while data := await reader.read(1 << 16):
                for call, kind, payload in parser.feed(data):
                    if kind == Kind.READ:
                        self.reads[call] += 1
                    else:
                        self._frames[call].put_nowait(Frame(kind, payload))
        for queue in self._frames.values():
            queue.put_nowait(None)

    def begin(self, kind: Kind, payload: bytes) -> int:
        call = next(self._numbers)
        self._frames[call] = asyncio.Queue()
        self.send(call, kind, payload)
        return call

    def send(self, call: int, kind: int, payload: bytes = b"") -> None:
        if not self._unwritten:
            asyncio.get_running_loop().call_soon(self._write)
        self._unwritten.append(frame(call, kind, payload))

    def _write(self) -> None:
        self._writer.write(b"".join(self._unwritten))
        self._unwritten.clear()

    def grant(self, call: int, size: int) -> None:
        self.send(call, Kind.CREDIT, CREDIT.pack(size))

    async def next(self, call: int) -> Frame:
        """The next frame of a call. EOFError if the connection ends."""
        found = await self._frames[call].get()
        if found is None:
            raise EOFError
        return found

    async def rest(self, call: int) -> list[Frame]:
        """All frames of a call up to its end, with credit for each."""
        found = [await self.next(call)]
        while found[-1].kind not in END_OF_CALL:
            self.grant(call, len(found[-1].payload))
            found.append(await self.next(call))
        return found

    def waiting(self, call: int) -> list[Frame]:
        """What has come of a call and has not been read."""
        queue = self._frames[call]
        return [one for one in (queue.get_nowait() for _ in range(queue.qsize())) if one is not None]

    async def predict(self, payload: bytes) -> list[Frame]:
        return await self.rest(self.begin(Kind.PREDICT, payload))

    async def texts(self, payload: bytes) -> list[list[str]]:
        """The texts of each response of a stream with one request."""
        call = self.begin(Kind.STREAM, payload)
        self.send(call, Kind.INPUT_END)
        found = await self.rest(call)
        assert found[-1].kind == Kind.END, found[-1]
        return [texts_of(one.payload) for one in found[:-1]]

    async def close(self) -> None:
        self._writer.close()
        await self._reading


class RunningHost:
    """The keeper's side: events, the process, its stderr (a file)."""

    def __init__(self, process: asyncio.subprocess.Process, keeper: socket.socket, path: Path, stderr: Path) -> None:
        self.process = process
        self.keeper = keeper
        self.path = path
        self._stderr = stderr
        self._received = b""

    async def event(self) -> dict[str, Any]:
        """The next event. EOFError if the process ends before."""
        while b"\n" not in self._received:
            data = await asyncio.get_running_loop().sock_recv(self.keeper, 65536)
            if not data:
                raise EOFError(self.stderr())
            self._received += data
        line, _, self._received = self._received.partition(b"\n")
        event: dict[str, Any] = json.loads(line)
        return event

    async def figures(self, **wanted: int) -> dict[str, Any]:
        """The first figures that have these values."""
        while True:
            event = await self.event()
            if event["event"] == "figures" and wanted.items() <= event.items():
                return event

    async def connect(self) -> WorkerSide:
        return WorkerSide(*await asyncio.open_unix_connection(str(self.path)))

    async def said(self, text: str) -> None:
        """Wait until the process has written this."""
        while text not in self.stderr():  # noqa: ASYNC110 - a file has no event
            await asyncio.sleep(0.005)

    def stderr(self) -> str:
        return self._stderr.read_text("utf-8")


@asynccontextmanager
async def started_host(
    folder: Path,
    code: str,
    settings: Mapping[str, Any] | None = None,
    interpreter: Sequence[str] = (PYTHON,),
    first_line: bytes | None = None,
) -> AsyncIterator[RunningHost]:
    """Start the host of a model whose module `model` is `code` behind PREAMBLE, with a class `Model`.

    `first_line` is sent in place of the keeper's.
    """
    (folder / "model.py").write_text(PREAMBLE + textwrap.dedent(code))
    ours, theirs = socket.socketpair()
    path, stderr = folder / "host.sock", folder / "stderr.txt"
    with ours, stderr.open("wb") as errors:
        with theirs:
            process = await asyncio.create_subprocess_exec(
                *interpreter, str(HOST), "trial", str(theirs.fileno()),
                stdin=asyncio.subprocess.DEVNULL, stderr=errors, stdout=errors, pass_fds=[theirs.fileno()],
            )  # fmt: skip
        ours.setblocking(False)
        start = {
            "folder": str(folder),
            "settings": {"name": "trial", "implementation": "model.Model", **(settings or {})},
            "server_settings": {},
            "socket": str(path),
            "figures_seconds": 0.02,
        }
        ours.sendall(first_line or json.dumps(start).encode() + b"\n")
        try:
            yield RunningHost(process, ours, path, stderr)
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


@asynccontextmanager
async def ready_host(
    folder: Path, code: str, settings: Mapping[str, Any] | None = None, interpreter: Sequence[str] = (PYTHON,)
) -> AsyncIterator[tuple[RunningHost, WorkerSide]]:
    """Start the host of a model, wait until it is ready, and connect to it."""
    async with started_host(folder, code, settings, interpreter) as host:
        event = await host.event()
        assert event["event"] == "ready", event
        worker = await host.connect()
        try:
            yield host, worker
        finally:
            await worker.close()
