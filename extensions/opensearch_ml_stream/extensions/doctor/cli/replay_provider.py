"""A provider on loopback that plays a recording for every POST, read by read at the recorded times."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from starlette.types import Receive, Scope, Send

from opensearch_ml_stream.extensions.doctor.diagnosis.recording import Recording
from opensearch_ml_stream.plugin.demo.background_server import serving_in_background

HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class ReplayProvider:
    """The provider as an ASGI application. `speed` divides the recorded times; with 0 nothing is waited for.

    Times count from the end of the request's body, which is read and thrown away. A recording that ends `broken` ends
    with a broken connection.
    """

    recording: Recording
    speed: float = 1.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["method"] != "POST":
            await _refuse(send)
            return
        while (message := await receive())["type"] == "http.request" and message.get("more_body"):
            pass
        playing = asyncio.create_task(self._play(send))
        disconnected = asyncio.create_task(_disconnect(receive))
        try:
            await asyncio.wait((playing, disconnected), return_when=asyncio.FIRST_COMPLETED)
        finally:
            disconnected.cancel()
            playing.cancel()
            await asyncio.gather(playing, disconnected, return_exceptions=True)

    async def _play(self, send: Send) -> None:
        clock = asyncio.get_running_loop().time
        started = clock()

        async def wait_until(milliseconds: float) -> None:
            if self.speed > 0:
                await asyncio.sleep(started + milliseconds / 1000 / self.speed - clock())

        headers = [(name.encode(), value.encode()) for name, value in self.recording.headers]
        start = {"type": "http.response.start", "status": self.recording.status, "headers": headers}
        if self.recording.reads:
            await wait_until(self.recording.reads[0].milliseconds)
        await send(start)
        for read in self.recording.reads:
            await wait_until(read.milliseconds)
            await send({"type": "http.response.body", "body": read.data, "more_body": True})
        await wait_until(self.recording.end_milliseconds)
        if self.recording.end == "complete":  # else the server breaks the connection, as the body has no end
            await send({"type": "http.response.body", "body": b"", "more_body": False})


@contextmanager
def replay_provider(recording: Recording, speed: float = 1.0, port: int = 0) -> Iterator[str]:
    """Run the provider in a thread, on any free port for 0; yield its URL. OSError if the port cannot be had."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
        listener.listen()
        with serving_in_background(ReplayProvider(recording, speed), listener, "critical"):
            yield f"http://{HOST}:{listener.getsockname()[1]}"


async def _disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _refuse(send: Send) -> None:
    body = b'{"error": "A replayed recording responds to POST only"}'
    headers = [(b"content-type", b"application/json"), (b"allow", b"POST")]
    await send({"type": "http.response.start", "status": 405, "headers": headers})
    await send({"type": "http.response.body", "body": body})
