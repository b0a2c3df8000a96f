"""The keeper's process: whether a server needs it, and its main block."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.extensions.runtimes.extension import RuntimesSettings
from opensearch_ml_stream.extensions.runtimes.keeper.model_folders import check_models_folder
from opensearch_ml_stream.extensions.runtimes.service.status import runtimes_folder
from opensearch_ml_stream.plugin.background_tasks import BackgroundTasks
from opensearch_ml_stream.plugin.extension import load
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.rest_handlers.base_path import Paths

if TYPE_CHECKING:  # the code is only loaded in this process, which most servers do not have
    from opensearch_ml_stream.extensions.runtimes.keeper.keeper import Keeper

MAX_SOCKET_FOLDER = 90  # bytes of its path: the path of a socket may have 107


def prepare(settings: Settings, folder: Path) -> bool:
    """Return whether models are configured; if so, make the folder of their sockets.

    InvalidRequest if the models do not exist, or the folder's path is too long.
    """
    models = settings.of(RuntimesSettings).models
    if not models:
        return False
    check_models_folder(Path(models))
    path = runtimes_folder(folder)
    if len(os.fsencode(path)) > MAX_SOCKET_FOLDER:
        raise InvalidRequest(f"The path {path} is too long for sockets; name a shorter folder by TMPDIR")
    path.mkdir(mode=0o700)
    return True


@asynccontextmanager
async def open_keeper(
    settings: Settings, folder: Path, paths: Paths, background: BackgroundTasks
) -> AsyncIterator["Keeper"]:
    """Keep the runtimes while the block runs."""
    opening = load("opensearch_ml_stream.extensions.runtimes.keeper.keeper:open_keeper")
    async with opening(settings, runtimes_folder(folder), paths, background) as keeper:
        yield keeper
