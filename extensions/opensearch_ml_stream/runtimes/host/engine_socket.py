"""The socket at which workers ask for an engine's server: they get its URL and key in a JSON line.

Only the server's own user may open it. A worker keeps the connection open during its call, so calls can be counted; a
byte that it writes before the end means that the call failed.
"""

import asyncio
import json
import os
from contextlib import AbstractAsyncContextManager, suppress
from types import TracebackType

from opensearch_ml_stream.runtimes.host.keeper_socket import Figures

FAILED = b"!"


class EngineSocket(AbstractAsyncContextManager["EngineSocket"]):
    """Listens at the path while the block runs."""

    def __init__(self, path: str, url: str, key: str) -> None:
        self.figures = Figures()
        self._path = path
        self._line = json.dumps({"url": url, "key": key}).encode() + b"\n"

    async def __aenter__(self) -> "EngineSocket":
        self._server = await asyncio.start_unix_server(self._attend, self._path, backlog=1024)
        os.chmod(self._path, 0o600)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.close()
        with suppress(OSError):
            os.unlink(self._path)

    async def _attend(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.figures.calls += 1
        self.figures.in_flight += 1
        try:
            writer.write(self._line)
            if await reader.read() == FAILED:
                self.figures.failures += 1
        except ConnectionError:
            pass  # the worker has ended
        finally:
            self.figures.in_flight -= 1
            writer.close()
