"""The keeper: loads the models of a folder into processes of their own, and writes their states to the status file."""

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from opensearch_ml_stream.connectors.errors import MLStreamError, NotFound
from opensearch_ml_stream.extensions.runtimes.extension import RuntimesSettings
from opensearch_ml_stream.extensions.runtimes.keeper.environments import (
    environment_variables,
    environments_folder,
    interpreter,
    secret_variables,
)
from opensearch_ml_stream.extensions.runtimes.keeper.host_process import Launch
from opensearch_ml_stream.extensions.runtimes.keeper.kept_model import KeptModel
from opensearch_ml_stream.extensions.runtimes.keeper.loaded_model import LoadedModel
from opensearch_ml_stream.extensions.runtimes.keeper.mlserver_settings import not_needed, read_server_settings
from opensearch_ml_stream.extensions.runtimes.keeper.model_folders import POLL_SECONDS, ModelFolder, look, model_id
from opensearch_ml_stream.extensions.runtimes.keeper.runtime_documents import (
    DocumentState,
    DocumentWriter,
    RuntimeDocuments,
    is_provided,
)
from opensearch_ml_stream.extensions.runtimes.service.control import Operation, serving_control
from opensearch_ml_stream.extensions.runtimes.service.status import (
    STATUS_FILE,
    HandlerStatus,
    ModelStatus,
    State,
    read_status,
    write_status,
)
from opensearch_ml_stream.plugin.background_tasks import BackgroundTasks
from opensearch_ml_stream.plugin.clock import now_millis
from opensearch_ml_stream.plugin.credentials.cipher import Cipher
from opensearch_ml_stream.plugin.settings import LiveSettings, Settings
from opensearch_ml_stream.plugin.settings.dynamic import watching_settings
from opensearch_ml_stream.plugin.store.open_store import open_store
from opensearch_ml_stream.rest_handlers.base_path import Paths

STATUS_SECONDS = 1.0
END_SECONDS = 5.0  # for a process that sees its keeper gone to end by itself
END_POLL_SECONDS = 0.1
_DOCUMENT_STATES: dict[State, DocumentState] = {
    "LOADING": "DEPLOYING", "READY": "DEPLOYED", "FAILED": "DEPLOY_FAILED",
}  # fmt: skip

log = logging.getLogger("opensearch_ml_stream")

_Route = tuple[str, str]  # method and path of a custom handler


@asynccontextmanager
async def open_keeper(
    settings: Settings, folder: Path, paths: Paths, background: BackgroundTasks
) -> AsyncIterator["Keeper"]:
    """Keep the models of the settings' folder while the block runs; `folder` has the sockets and the status file."""
    async with AsyncExitStack() as stack:
        await end_leftovers(folder)
        store = await stack.enter_async_context(open_store(settings.store, settings.index_prefix))
        cipher = Cipher(store, settings.master_key_cache_ttl_minutes)
        live = LiveSettings(settings)
        keeper = Keeper(live, folder, RuntimeDocuments(store, live, now_millis, cipher), paths, background)
        await stack.enter_async_context(background.running("runtime documents", keeper.documents.take_turn))
        stack.push_async_callback(keeper.close)
        await keeper.begin()
        await stack.enter_async_context(serving_control(folder, keeper.obey))
        await stack.enter_async_context(
            background.running("runtime status", keeper.write_figures, after=STATUS_SECONDS)
        )
        await stack.enter_async_context(watching_settings(store, live, background))
        if settings.of(RuntimesSettings).models_watch:
            await stack.enter_async_context(background.running("models folder", keeper.watch, after=POLL_SECONDS))
        yield keeper


class Keeper:
    """The models by the names of their processes. `folder` has the sockets and the status file."""

    def __init__(
        self,
        live: LiveSettings,
        folder: Path,
        documents: RuntimeDocuments,
        paths: Paths,
        background: BackgroundTasks,
    ) -> None:
        self._live = live
        self._background = background
        self._settings = live.at_start
        self._tried_with = live.current  # the settings when documents were refused
        self._directory = Path(self._settings.of(RuntimesSettings).models)
        self._folder = folder
        self.documents = DocumentWriter(documents, self._refuse)
        self._models: dict[str, KeptModel] = {}
        self._server_settings: dict[str, Any] = {}
        self._loads = count(next_load_number(folder))
        self._handlers = HandlerPaths(paths)
        self._shown: dict[str, tuple[State, ModelFolder]] = {}  # the states in the documents
        self._known: dict[str, ModelFolder] = {}  # the folders whose changes were followed
        self._seen: dict[str, ModelFolder] = {}  # the folders at the watch's last look
        self._looking = asyncio.Lock()  # so that no one follows an outdated look at the folders
        self._finding = asyncio.Lock()
        self._loading: set[asyncio.Task[None]] = set()

    async def begin(self) -> None:
        """Read the folder, and begin to load its models, unless `load_models_at_startup` is false.

        After a killed keeper the same models are loaded as before.
        """
        before = read_status(self._folder / STATUS_FILE)
        self._server_settings, problem = await asyncio.to_thread(read_server_settings, self._directory)
        if problem:
            log.warning("%s", problem)
        if line := not_needed(self._server_settings):
            log.info("%s", line)
        at_start = self._server_settings.get("load_models_at_startup") is not False
        self._known = self._seen = await self._look()
        for key, folder in self._known.items():
            is_wanted = before[key].state != "UNLOADED" if key in before else at_start
            model = self._add(key, folder, is_wanted=is_wanted)
            if is_wanted:
                self._spawn(model, model.load_if_wanted)
            elif not folder.problem:
                self.documents.put(key, folder, "UNDEPLOYED")
        self.documents.retire_others(lambda: {model_id(model.folder) for model in self._models.values()})
        self._changed()

    async def obey(self, operation: Operation, name: str) -> None:
        """Execute a command of `RuntimeControl`; NotFound without the model, UpstreamError if it cannot be loaded.

        The worker writes the model's state afterwards, and no earlier state may be written over that.
        """
        match operation:
            case "find":
                await self._find(name)
            case "load":
                await self._load(name)
            case "ensure":
                await self._model(name).ensure()
                await self.documents.written()
            case "unload" if name in self._models:
                model = self._models[name]
                await model.unload()
                await self.documents.forget(model.folder)
                log.info("runtime %s: unloaded", name)
            case "unload":
                pass

    async def drain(self, seconds: float) -> None:
        """Wait until no model has a call in flight, but not longer than that."""
        await asyncio.gather(*(model.drain(seconds) for model in self._models.values()))

    async def close(self) -> None:
        """End all processes."""
        for task in self._loading:
            task.cancel()
        await asyncio.gather(*(model.stop() for model in self._models.values()))

    def kill(self) -> None:
        """Kill all processes, which did not end in time."""
        for model in self._models.values():
            model.kill()

    async def write_figures(self) -> float:
        """Write the states of the models, and load again what was refused under other settings."""
        for model in self._models.values():
            model.measure()
        self._write()
        if self._tried_with is not self._live.current:
            self._tried_with = self._live.current
            for key, model in self._models.items():
                if model.is_refused:
                    self._spawn(model, partial(self._load, key))
        return STATUS_SECONDS

    async def watch(self) -> float:
        """Load what was added or changed in the folder, and unload what was removed, once two looks are the same."""
        async with self._looking:
            before, now = self._known, await self._look()
            if is_settled := now == self._seen:
                self._known = now
        self._seen = now
        if is_settled and now != before:
            try:
                await self._follow(before, now)
            except BaseException:
                self._known = before  # the next look finds again what was not followed
                raise
        return POLL_SECONDS

    async def _look(self) -> dict[str, ModelFolder]:
        return await asyncio.to_thread(look, self._directory)

    async def _look_for(self, is_meant: Callable[[str, ModelFolder], bool]) -> dict[str, ModelFolder]:
        """Return the matching models as their folders are now; the watch does not follow these changes again."""
        async with self._looking:
            found = {key: folder for key, folder in (await self._look()).items() if is_meant(key, folder)}
            self._known = {**self._known, **found}
        return found

    async def _find(self, name: str) -> None:
        """Load new folders with a model's name, and write their documents."""
        async with self._finding:
            found = await self._look_for(lambda _, folder: folder.name == name)
            for key, folder in found.items():
                model = self._models.get(key)
                if model is None:
                    log.info("runtime %s: a new folder, %s", key, folder.folder)
                    await self._add(key, folder).load()
                elif not model.folder.settings or model_id(model.folder) != model_id(folder) or model.is_refused:
                    await model.load_anew(folder)
            await self._write_documents()
        for model in [self._models[key] for key in found if key in self._models]:
            if model.is_refused:
                model.check()

    async def _load(self, name: str) -> None:
        """Load a model as its folder is now, and write its document."""
        model, found = self._model(name), await self._look_for(lambda key, _: key == name)
        if not found:
            raise self._missing(name)
        await model.load_anew(found[name])
        await self._write_documents()
        model.check()

    async def _write_documents(self) -> None:
        self._changed()
        await self.documents.flush()

    def _model(self, name: str) -> KeptModel:
        if name not in self._models:
            raise self._missing(name)
        return self._models[name]

    def _missing(self, name: str) -> NotFound:
        return NotFound(f"There is no runtime of a model {name} in {self._directory}")

    async def _follow(self, before: dict[str, ModelFolder], now: dict[str, ModelFolder]) -> None:
        for key in before.keys() - now.keys():
            if (model := self._models.pop(key, None)) is not None:
                log.info("runtime %s: its folder has gone; it is unloaded", key)
                await model.drain(self._settings.shutdown_grace_seconds)
                await model.stop()
                self._shown.pop(key, None)
                self.documents.put(key, model.folder, "UNDEPLOYED")
        for key, folder in now.items():
            if before.get(key) == folder:
                continue
            if key not in self._models:
                log.info("runtime %s: a new folder, %s", key, folder.folder)
                model = self._add(key, folder)
                self._spawn(model, model.load_if_wanted)
            else:
                log.info("runtime %s: its files have changed; it is loaded anew", key)
                self._spawn(self._models[key], partial(self._models[key].replace, folder))
        self._changed()

    def _add(self, key: str, folder: ModelFolder, *, is_wanted: bool = True) -> KeptModel:
        grace = self._settings.shutdown_grace_seconds
        model = self._models[key] = KeptModel(
            key, folder, self._start, self._changed, grace, self._background, is_wanted=is_wanted
        )
        return model

    def _spawn(self, model: KeptModel, work: Callable[[], Awaitable[None]]) -> None:
        """Load a model in the background; failures that are not the model's are retried while it is kept."""

        async def do() -> None:
            if self._models.get(model.name) is not model:
                return
            try:
                await work()
            except MLStreamError as error:
                log.debug("%s", error.reason)  # the reason was logged before

        task = self._background.start("runtime loading", do)
        self._loading.add(task)
        task.add_done_callback(self._loading.discard)

    async def _start(self, key: str, model: ModelFolder) -> LoadedModel:
        if is_provided(model):
            return LoadedModel(None, [], self._changed, self._background)
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
        return LoadedModel(launch, sockets, self._changed, self._background)

    def _changed(self) -> None:
        """Write changes at once, since callers who wait for a model are told next.

        If that fails, as on a full disk, `write_figures` does it later and reports the failure.
        """
        with suppress(Exception):
            self._write()

    def _write(self) -> None:
        """Write the status file, and queue the documents whose states have changed."""
        statuses = {key: model.status() for key, model in self._models.items()}
        self._handlers.share_out(statuses)
        write_status(self._folder / STATUS_FILE, statuses)
        for key, model in self._models.items():
            state, (shown, folder) = model.state, self._shown.get(key, (None, model.folder))
            if shown == state and folder == model.folder:
                continue
            self._log_state(key, model, state)
            self._shown[key] = state, model.folder
            if folder.settings and model_id(folder) != model_id(model.folder):
                self.documents.put(key, folder, "UNDEPLOYED")
            if state in _DOCUMENT_STATES and model.folder.settings:
                self.documents.put(key, model.folder, _DOCUMENT_STATES[state])

    def _refuse(self, key: str, reason: str) -> None:
        log.error("runtime %s: its document cannot be written: %s", key, reason)
        if (model := self._models.get(key)) is not None and is_provided(model.folder):
            model.refuse(reason)

    def _log_state(self, key: str, model: KeptModel, state: State) -> None:
        if state == "READY" and not is_provided(model.folder):
            processes = ", ".join(f"process {process.pid}" for process in model.status().processes)
            log.info("runtime %s: ready (%s)", key, processes)


class HandlerPaths:
    """The models that own methods and paths of custom handlers: of two with the same one, the first that had it."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._owners: dict[_Route, str] = {}
        self._refused: set[tuple[str, _Route]] = set()  # that were logged

    def share_out(self, models: Mapping[str, ModelStatus]) -> None:
        """Give numbers to the handlers of loaded models, and leave out those whose paths belong to another model.

        These are logged. The path of an unloaded model is free again.
        """
        asked = {(name, (one.method, one.path)) for name, model in models.items() for one in model.handlers}
        self._owners = {route: name for route, name in self._owners.items() if (name, route) in asked}
        self._refused &= asked
        for name, model in models.items():
            kept = [route for one in model.handlers if self._takes(name, route := (one.method, one.path))]
            model.handlers = [HandlerStatus(*route) for route in dict.fromkeys(kept)]
        numbers = {route: number for number, route in enumerate(self._owners)}
        for model in models.values():
            for handler in model.handlers:
                handler.number = numbers[handler.method, handler.path]

    def _takes(self, name: str, route: _Route) -> bool:
        reserved = self._paths.is_reserved(route[1])
        owner = None if reserved else self._owners.setdefault(route, name)
        if owner == name:
            return True
        if (name, route) not in self._refused:
            self._refused.add((name, route))
            reason = "the path is the server's own" if reserved else f"it is that of model {owner}, loaded before"
            log.warning("runtime %s: the custom handler %s %s is not served: %s", name, *route, reason)
        return False


def next_load_number(folder: Path) -> int:
    """Return a number for a load that no socket in the folder has."""
    numbers = [path.name.partition(".")[0] for path in folder.glob("*.sock")]
    numbers += [
        Path(process.socket).name.partition(".")[0]
        for model in read_status(folder / STATUS_FILE).values()
        for process in model.processes
    ]
    return max((int(number) for number in numbers if number.isdecimal()), default=0) + 1


async def end_leftovers(folder: Path) -> None:
    """Wait for the processes of a killed keeper to end, and kill those that do not."""
    models = read_status(folder / STATUS_FILE).values()
    pids = [process.pid for model in models for process in model.processes if process.pid]
    left = [pid for pid in pids if _is_ours(pid)]
    for _ in range(round(END_SECONDS / END_POLL_SECONDS)):
        if not left:
            return
        await asyncio.sleep(END_POLL_SECONDS)
        left = [pid for pid in left if _is_ours(pid)]
    for pid in left:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)


def _is_ours(pid: int) -> bool:
    """Return whether the process is still one of a model, and not another with a reused pid."""
    try:
        return b"runtimes/__main__.py" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
