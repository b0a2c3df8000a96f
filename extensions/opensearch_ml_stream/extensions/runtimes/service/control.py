"""The control socket, over which workers ask the keeper to load and unload models: one JSON line each way."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Literal, get_args

from opensearch_ml_stream.connectors.errors import (
    InvalidRequest,
    MLStreamError,
    NotFound,
    Unavailable,
    UpstreamError,
)
from opensearch_ml_stream.extensions.runtimes.service.status import CONTROL_SOCKET

Operation = Literal["find", "load", "ensure", "unload"]
Obey = Callable[[Operation, str], Awaitable[None]]

MAX_LINE = 64 * 1024
_OPERATIONS: tuple[Operation, ...] = get_args(Operation)

log = logging.getLogger("opensearch_ml_stream")


class RuntimeControl:
    """Sends commands to the keeper, whose socket is in the `folder` of the runtimes."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / CONTROL_SOCKET

    async def find(self, name: str) -> None:
        """Load new folders with models of that name, if any; return once they are in the store."""
        if self._has_keeper():
            await self._ask("find", name)

    async def load(self, name: str) -> None:
        """Load the model as its files are now; return once it is loaded.

        NotFound if this server has no such model, UpstreamError if it cannot be loaded, Unavailable while there is no
        keeper.
        """
        await self._ask_of_here("load", name)

    async def ensure(self, name: str) -> None:
        """Load the model, if it is not; raises what `load` does."""
        await self._ask_of_here("ensure", name)

    async def _ask_of_here(self, operation: Operation, name: str) -> None:
        if not self._has_keeper():
            raise NotFound(
                f"The runtime of model {name} is not on this server; start it with --models and the model's folder"
            )
        await self._ask(operation, name)

    async def unload(self, name: str) -> None:
        """Unload the model, if it is loaded here; return once its processes have ended."""
        if self._has_keeper():
            await self._ask("unload", name)

    def _has_keeper(self) -> bool:
        return self._path.parent.exists()

    async def _ask(self, operation: Operation, name: str) -> None:
        try:
            reader, writer = await asyncio.open_unix_connection(str(self._path))
            try:
                writer.write(json.dumps({"op": operation, "model": name}).encode() + b"\n")
                line = await reader.readline()
            finally:
                writer.close()
            error = json.loads(line).get("error")
        except (OSError, ValueError):
            raise Unavailable("The process that keeps the runtimes does not respond; try again") from None
        if error is not None:
            raise _error(error)


@asynccontextmanager
async def serving_control(folder: Path, obey: Obey) -> AsyncIterator[None]:
    """Serve the commands of workers by `obey` while the block runs."""
    path = folder / CONTROL_SOCKET
    path.unlink(missing_ok=True)  # that of a keeper before this one

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            try:
                request = json.loads(await reader.readline())
                writer.write(json.dumps(await _response(obey, request)).encode() + b"\n")
                await writer.drain()
            finally:
                writer.close()

    server = await asyncio.start_unix_server(serve, path, limit=MAX_LINE)
    async with server:
        yield


async def _response(obey: Obey, request: Mapping[str, Any]) -> dict[str, Any]:
    operation = request.get("op")
    if operation not in _OPERATIONS:
        return _error_object(InvalidRequest(f"op must be one of {', '.join(_OPERATIONS)}"))
    try:
        await obey(operation, str(request.get("model")))
    except MLStreamError as error:
        return _error_object(error)
    return {}


def _error_object(error: MLStreamError) -> dict[str, Any]:
    return {"error": {"status": error.status, "type": error.type, "reason": error.reason}}


def _error(error: Mapping[str, Any]) -> MLStreamError:
    kind = {400: InvalidRequest, 404: NotFound, 503: Unavailable}.get(error["status"], UpstreamError)
    return kind(error["reason"])
