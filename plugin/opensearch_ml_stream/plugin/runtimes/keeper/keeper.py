"""Keeper: loads the models of a folder into processes of their own, and says in the status file how they are."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

from opensearch_ml_stream.connectors.errors import MLStreamError, NotFound
from opensearch_ml_stream.plugin.background_task import running_beside
from opensearch_ml_stream.plugin.clock import now_millis
from opensearch_ml_stream.plugin.credentials.cipher import Cipher
from opensearch_ml_stream.plugin.runtimes.control import Operation, serving_control
from opensearch_ml_stream.plugin.runtimes.handler_paths import HandlerPaths
from opensearch_ml_stream.plugin.runtimes.keeper import leftovers
from opensearch_ml_stream.plugin.runtimes.keeper.document_writer import DocumentWriter
from opensearch_ml_stream.plugin.runtimes.keeper.environments import (
    environment_variables,
    environments_folder,
    interpreter,
    secret_variables,
)
from opensearch_ml_stream.plugin.runtimes.keeper.folder_watch import POLL_SECONDS, Print, prints
from opensearch_ml_stream.plugin.runtimes.keeper.host_process import Launch
from opensearch_ml_stream.plugin.runtimes.keeper.kept_model import KeptModel
from opensearch_ml_stream.plugin.runtimes.keeper.loaded_model import LoadedModel
from opensearch_ml_stream.plugin.runtimes.keeper.mlserver_settings import not_needed, read_server_settings
from opensearch_ml_stream.plugin.runtimes.keeper.model_folders import ModelFolder, model_id, read_model_folders
from opensearch_ml_stream.plugin.runtimes.keeper.runtime_documents import (
    DocumentState,
    RuntimeDocuments,
    is_provided,
)
from opensearch_ml_stream.plugin.runtimes.status import STATUS_FILE, State, write_status
from opensearch_ml_stream.plugin.settings import LiveSettings, Settings
from opensearch_ml_stream.plugin.store.open_store import open_store

STATUS_SECONDS = 1.0
_DOCUMENT_STATES: dict[State, DocumentState] = {
    "LOADING": "DEPLOYING", "READY": "DEPLOYED", "FAILED": "DEPLOY_FAILED",
}  # fmt: skip

log = logging.getLogger("opensearch_ml_stream")


@asynccontextmanager
async def open_keeper(settings: Settings, folder: Path) -> AsyncIterator["Keeper"]:
    """Keep the models of the settings' folder while the block runs; `folder` is that of sockets and status."""
    async with AsyncExitStack() as stack:
        await leftovers.end(folder)
        store = await stack.enter_async_context(open_store(settings.store, settings.index_prefix))
        cipher = Cipher(store, settings.master_key_cache_ttl_minutes)
        keeper = Keeper(settings, folder, RuntimeDocuments(store, LiveSettings(settings), now_millis, cipher))
        await stack.enter_async_context(running_beside(keeper.documents.run()))
        stack.push_async_callback(keeper.close)
        await keeper.begin()
        await stack.enter_async_context(serving_control(folder, keeper.obey))
        await stack.enter_async_context(running_beside(keeper.write_again_and_again()))
        if settings.models_watch:
            await stack.enter_async_context(running_beside(keeper.watch()))
        yield keeper


class Keeper:
    """The models by the names that their processes have. `folder` is that of the runtimes' sockets and status."""

    def __init__(self, settings: Settings, folder: Path, documents: RuntimeDocuments) -> None:
        self._settings = settings
        self._directory = Path(settings.models)
        self._folder = folder
        self.documents = DocumentWriter(documents, self._refuse)
        self._models: dict[str, KeptModel] = {}
        self._server_settings: dict[str, Any] = {}
        self._loads = count(leftovers.next_number(folder))
        self._handlers = HandlerPaths()
        self._shown: dict[str, State] = {}  # the states that were written into documents
        self._loading: set[asyncio.Task[None]] = set()

    async def begin(self) -> None:
        """Read the folder, and begin to load its models, unless `load_models_at_startup` is false."""
        self._server_settings, problem = await asyncio.to_thread(read_server_settings, self._directory)
        if problem:
            log.warning("%s", problem)
        if line := not_needed(self._server_settings):
            log.info("%s", line)
        at_start = self._server_settings.get("load_models_at_startup") is not False
        for key, folder in (await asyncio.to_thread(read_model_folders, self._directory)).items():
            self._add(key, folder, load=at_start)
        self.documents.retire_others({model_id(model.folder) for model in self._models.values()})
        self._write()

    async def obey(self, operation: Operation, name: str) -> None:
        """Load or unload a model; NotFound without it, UpstreamError if it cannot be loaded."""
        model = self._models.get(name)
        if operation == "unload":
            if model is not None:
                await model.unload()
                log.info("runtime %s: unloaded", name)
            return
        if model is None:
            raise NotFound(f"There is no runtime of a model {name} in {self._directory}")
        await model.load()

    async def drain(self, seconds: float) -> None:
        """Wait until no model has a call in flight, for no longer than that."""
        await asyncio.gather(*(model.drain(seconds) for model in self._models.values()))

    async def close(self) -> None:
        """End all processes."""
        for task in self._loading:
            task.cancel()
        await asyncio.gather(*(model.stop() for model in self._models.values()))

    def kill(self) -> None:
        """Kill all processes, that do not end soon enough."""
        for model in self._models.values():
            model.kill()

    async def write_again_and_again(self) -> None:
        """Write the figures once a second."""
        while True:
            await asyncio.sleep(STATUS_SECONDS)
            for model in self._models.values():
                model.measure()
            self._write()

    async def watch(self) -> None:
        """Load what comes or changes in the folder, and unload what goes, once it has been the same for two looks."""
        known = await self._prints()
        last = known
        while True:
            await asyncio.sleep(POLL_SECONDS)
            now = await self._prints()
            if now != known and now == last:
                await self._follow(known, now)
                known = now
            last = now

    async def _prints(self) -> dict[str, Print]:
        return await asyncio.to_thread(lambda: prints(read_model_folders(self._directory)))

    async def _follow(self, before: dict[str, Print], now: dict[str, Print]) -> None:
        folders = await asyncio.to_thread(read_model_folders, self._directory)
        for key in before.keys() - now.keys():
            if (model := self._models.pop(key, None)) is not None:
                log.info("runtime %s: its folder has gone; it is unloaded", key)
                await model.drain(self._settings.shutdown_grace_seconds)
                await model.stop()
                self._shown.pop(key, None)
                self.documents.put(key, model.folder, "UNDEPLOYED")
        for key, print in now.items():
            if key not in folders or before.get(key) == print:
                continue
            if key not in self._models:
                log.info("runtime %s: a new folder, %s", key, folders[key].folder)
                self._add(key, folders[key], load=True)
            else:
                log.info("runtime %s: its files have changed; it is loaded anew", key)
                self._spawn(self._models[key].replace(folders[key]))
        self._write()

    def _add(self, key: str, folder: ModelFolder, *, load: bool) -> None:
        settings = self._settings
        model = self._models[key] = KeptModel(
            key, folder, self._start, self._write, settings.shutdown_grace_seconds, settings.runtime_queue_size
        )
        if load:
            self._spawn(model.load())
        elif not folder.problem:
            self.documents.put(key, folder, "UNDEPLOYED")

    def _spawn(self, work: Any) -> None:
        async def do() -> None:
            try:
                await work
            except MLStreamError as error:
                log.debug("%s", error.reason)  # the reason itself was logged where it was found

        task = asyncio.create_task(do())
        self._loading.add(task)
        task.add_done_callback(self._loading.discard)

    async def _start(self, key: str, model: ModelFolder) -> LoadedModel:
        if is_provided(model):
            return LoadedModel(None, [], self._write)
        environments = environments_folder(self._server_settings, self._folder)
        python = await asyncio.to_thread(interpreter, model, environments)
        number = next(self._loads)
        introduction = {
            "folder": str(model.folder),
            "repository": str(self._directory.resolve()),
            "settings": model.settings,
            "server_settings": self._server_settings,
        }
        variables = environment_variables(python, secret_variables(self._settings))
        launch = Launch(model.name, python, variables, introduction)
        sockets = [str(self._folder / f"{number}.{process}.sock") for process in range(model.process_count)]
        return LoadedModel(launch, sockets, self._write)

    def _write(self) -> None:
        """Write the status file, and have those documents written whose states have changed."""
        statuses = {key: model.status() for key, model in self._models.items()}
        self._handlers.share_out(statuses)
        write_status(self._folder / STATUS_FILE, statuses)
        for key, model in self._models.items():
            state = model.state
            if self._shown.get(key) == state:
                continue
            self._log_state(key, model, state)
            self._shown[key] = state
            if state in _DOCUMENT_STATES and model.folder.settings:
                self.documents.put(key, model.folder, _DOCUMENT_STATES[state])

    def _refuse(self, key: str, reason: str) -> None:
        log.error("runtime %s: its document cannot be written: %s", key, reason)
        if (model := self._models.get(key)) is not None and is_provided(model.folder):
            model.refuse(reason)

    def _log_state(self, key: str, model: KeptModel, state: State) -> None:
        if state == "READY":
            processes = ", ".join(f"process {process.pid}" for process in model.status().processes)
            log.info("runtime %s: ready (%s)", key, processes or "a provider's")
