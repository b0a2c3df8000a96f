"""The process beside an engine's server: starts it, watches it, gives workers its address, and ends it."""

import asyncio
import os
import re
import secrets
import signal
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from opensearch_ml_stream.runtimes.engine_commands import HOST, Command, engine_command
from opensearch_ml_stream.runtimes.engine_settings import read_engine_settings
from opensearch_ml_stream.runtimes.host.background_tasks import Turn, start_watched
from opensearch_ml_stream.runtimes.host.engine_socket import EngineSocket
from opensearch_ml_stream.runtimes.host.failures import FailureLog
from opensearch_ml_stream.runtimes.host.keeper_socket import Keeper

WATCH_SECONDS = 2.0
SILENT_SECONDS = 5.0  # for the health route to respond
MOST_SILENCES = 6  # in a row; a busy machine is slow, too
END_SECONDS = 2.0
MAX_LINE = 1024 * 1024
_ERROR = re.compile(r"\b\w*(Error|Exception|error)\b.*:")
_MAX_REASON = 500


class EngineProcess:
    """One model that an engine's server runs. The server is in this process's group, which the keeper kills."""

    def __init__(self, keeper: Keeper, start: Mapping[str, Any], engine: str, log: FailureLog) -> None:
        self._keeper = keeper
        self._start = start
        self._engine = engine
        self._log = log
        self._port = _free_port()
        self._key = secrets.token_urlsafe(32)
        self._is_ready = False
        self._said = ""  # the last line of the server's log that looks like an error, else the last line

    async def run(self) -> int:
        """Run the server until it ends, stops responding, or the keeper ends it; return the exit status."""
        ending = asyncio.Event()
        self._keeper.watch(asyncio.get_running_loop(), ending.set)
        try:
            command = self._command()
            server = await _start(command, self._start["folder"])
        except (ValueError, OSError) as error:
            self._fail(f"{error} (model-settings.json: parameters.extra)")
            return 1
        relay = self._relay_turn(server, f'"GET {command.health} ')
        relaying = start_watched("relay of the engine's log", relay, self._log, self._keeper)
        end, exited = asyncio.create_task(ending.wait()), asyncio.create_task(server.wait())
        living = asyncio.create_task(self._live(command.health))
        await asyncio.wait({end, exited, living}, return_when=asyncio.FIRST_COMPLETED)
        if end.done():
            living.cancel()
            await self._end(server)
            return 0
        if exited.done():
            await asyncio.wait({relaying}, timeout=1.0)  # its children may hold the pipe open
        self._fail(living.result() if living.done() else self._ending(exited.result()))
        return 1

    def _command(self) -> Command:
        settings, folder = self._start["settings"], Path(self._start["folder"])
        parameters = settings.get("parameters") or {}
        read = read_engine_settings(parameters.get("extra"), parameters.get("uri") or ".", folder)
        return engine_command(self._engine, settings["name"], read, self._port, self._key)

    async def _live(self, health: str) -> str:
        """Wait until the server responds, let workers call it, and watch it; return what is wrong with it then."""
        while await self._status(health) != 200:  # noqa: ASYNC110  # another process
            await asyncio.sleep(0.1)
        if (status := await self._status("/v1/models")) != 401:
            return f"{self._engine}'s server asks for no key: GET /v1/models without one has status {status}, not 401"
        async with EngineSocket(self._start["socket"], f"http://{HOST}:{self._port}", self._key) as served:
            self._is_ready = True
            self._keeper.tell("ready", inputs=[], outputs=[], platform=self._engine, version=None)
            silences = 0
            while silences < MOST_SILENCES:
                await asyncio.sleep(WATCH_SECONDS)
                self._keeper.tell("figures", **served.figures.copied())
                status = await self._status(health)
                if status >= 500:
                    return f"{self._engine}'s engine has died: its server's {health} has status {status}"
                silences = 0 if status else silences + 1
        return f"{self._engine}'s server does not respond to GET {health}"

    async def _status(self, path: str) -> int:
        """Return the status of a GET without the key; 0 without a response."""
        try:
            return await asyncio.wait_for(_get(self._port, path), SILENT_SECONDS)
        except (OSError, ValueError, IndexError, asyncio.TimeoutError):  # noqa: UP041  # another one in Python 3.10
            return 0

    def _relay_turn(self, server: asyncio.subprocess.Process, health: str) -> Turn:
        """Return a turn that logs a line of the server's output, except the log of our health checks."""
        assert server.stdout is not None
        reader, is_error = server.stdout, False

        async def pass_on() -> "float | None":
            nonlocal is_error
            line = await _read_line(reader)
            text = line.decode("utf-8", "replace").strip()
            if health not in text:
                self._log.say(text)
                if text and not self._is_ready and (_ERROR.search(text) or not is_error):
                    is_error = bool(_ERROR.search(text))
                    self._said = text[:_MAX_REASON]
            return 0.0 if line else None

        return pass_on

    def _ending(self, code: int) -> str:
        how = f"ended with exit code {code}" if code >= 0 else f"was killed by signal {-code}"
        if self._is_ready:
            return f"{self._engine}'s server {how}"
        log_line = f": {self._said}" if self._said else ""
        return f"{self._engine}'s server {how} while it started{log_line} (model-settings.json: parameters)"

    def _fail(self, reason: str) -> None:
        self._log.say(reason)
        self._keeper.tell("failed", reason=reason)
        self._keeper.end()

    async def _end(self, server: asyncio.subprocess.Process) -> None:
        """End the server and this whole process group: the keeper may be gone."""
        with suppress(ProcessLookupError):
            server.terminate()
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(server.wait(), END_SECONDS)
        os.killpg(0, signal.SIGKILL)


async def _start(command: Command, folder: str) -> asyncio.subprocess.Process:
    """Start the server in the model's folder, where its options may name files, without importing modules from it."""
    variables = {name: value for name, value in os.environ.items() if name not in command.unset}
    return await asyncio.create_subprocess_exec(
        *command.arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**variables, "PYTHONSAFEPATH": "1", **command.variables},
        cwd=folder,
        limit=MAX_LINE,
    )


async def _get(port: int, path: str) -> int:
    reader, writer = await asyncio.open_connection(HOST, port)
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {HOST}:{port}\r\nConnection: close\r\n\r\n".encode())
        return int((await reader.readline()).split()[1])
    finally:
        writer.close()


async def _read_line(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readline()
    except ValueError:  # a line of more than MAX_LINE was dropped
        return b"...\n"


def _free_port() -> int:
    with socket.socket() as found:
        found.bind((HOST, 0))
        return int(found.getsockname()[1])
