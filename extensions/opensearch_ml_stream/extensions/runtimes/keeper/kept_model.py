"""One model of the keeper: its folder, its processes, its state, and its loading and unloading, one at a time."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from time import monotonic
from typing import Any

from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.extensions.runtimes.keeper.environments import NoEnvironment
from opensearch_ml_stream.extensions.runtimes.keeper.loaded_model import LoadedModel
from opensearch_ml_stream.extensions.runtimes.keeper.model_folders import ModelFolder, model_id
from opensearch_ml_stream.extensions.runtimes.keeper.runtime_documents import is_provided
from opensearch_ml_stream.extensions.runtimes.service import runtime_errors
from opensearch_ml_stream.extensions.runtimes.service.status import HandlerStatus, ModelStatus, State
from opensearch_ml_stream.plugin.background_tasks import BackgroundTasks

FORCED_SECONDS = 5.0  # between tries to load a model that fails, however often it is asked for

Start = Callable[[str, ModelFolder], Awaitable[LoadedModel]]
"""Start the processes of a model, under its name; NoEnvironment if they have no interpreter."""

log = logging.getLogger("opensearch_ml_stream")


class KeptModel:
    """A model by the name of its processes. `on_change` is called when its state may have changed.

    `grace`: how many seconds calls in flight have to end when its processes are replaced. `is_wanted`: whether it is to
    be loaded, or stays unloaded until it is loaded explicitly.
    """

    def __init__(
        self,
        name: str,
        folder: ModelFolder,
        start: Start,
        on_change: Callable[[], None],
        grace: float,
        background: BackgroundTasks,
        *,
        is_wanted: bool = True,
    ) -> None:
        self.name = name
        self.folder = folder
        self._start = start
        self._on_change = on_change
        self._grace = grace
        self._background = background
        self._is_wanted = is_wanted
        self._loaded: LoadedModel | None = None
        self._predictions = 0  # predictions that wait for it to be loaded
        self._problem = folder.problem  # why there are no processes, though there should be
        self._lock = asyncio.Lock()
        self._forced_at = -FORCED_SECONDS  # monotonic time of the last retry on request
        self._retiring: dict[asyncio.Task[None], LoadedModel] = {}  # replaced ones that end their calls

    @property
    def state(self) -> State:
        """The current state."""
        if not self._is_wanted:
            return "UNLOADED"
        if self._problem:
            return "FAILED"
        if self._loaded is None:
            return "LOADING"
        if self._loaded.was_ready:
            return "READY"
        return "FAILED" if self._loaded.failure else "LOADING"

    def status(self) -> ModelStatus:
        """Return the model's status."""
        loaded, settings = self._loaded, self.folder.settings
        description: dict[str, Any] = dict(loaded.description) if loaded is not None and self._is_wanted else {}
        return ModelStatus(
            state=self.state,
            reason=self._problem or ("" if loaded is None else loaded.failure),
            version=description.get("version") or self.folder.version,
            versions=description.get("versions") or settings.get("versions") or [],
            platform=description.get("platform") or settings.get("platform") or None,
            inputs=description.get("inputs") or settings.get("inputs") or [],
            outputs=description.get("outputs") or settings.get("outputs") or [],
            parameters=description.get("parameters") or {},
            model_id=model_id(self.folder),
            is_provided=is_provided(self.folder),
            handlers=[HandlerStatus(one["method"], one["path"]) for one in description.get("handlers") or []],
            processes=[] if loaded is None else loaded.statuses,
        )

    async def load(self) -> None:
        """Load the model if it is not; UpstreamError if it cannot be loaded."""
        async with self._lock:
            is_forced = self.state == "FAILED" and monotonic() - self._forced_at >= FORCED_SECONDS
            if is_forced:
                self._forced_at = monotonic()
            if is_forced or self._loaded is None:  # retry now, not when the delay has passed
                await self._begin(self.folder)
            loaded = self._loaded
        await self._settle(loaded)

    async def load_if_wanted(self) -> None:
        """Load the model unless it was unloaded meanwhile; raises what `load` does."""
        if self._is_wanted:
            await self.load()

    async def ensure(self) -> None:
        """Load the model for a prediction, which waits; Unavailable while it is being loaded for another reason."""
        if self.state == "LOADING" and not self._predictions:
            raise runtime_errors.loading(self.name)
        self._predictions += 1
        try:
            await self.load()
        finally:
            self._predictions -= 1

    async def load_anew(self, folder: ModelFolder) -> None:
        """Load the model as its folder is now, unless it is ready and has not changed.

        UpstreamError if it cannot be loaded; if it was loaded from earlier files, that continues to run.
        """
        async with self._lock:
            has_changed = folder != self.folder
            if self._loaded is not None and self._loaded.is_ready:
                if has_changed and (reason := await self._exchange(self._loaded, folder)):
                    raise self._cannot_be_loaded(f"{reason}. It goes on as before")
                return
            if has_changed or self._loaded is None or self.state != "LOADING":
                await self._begin(folder)
            loaded = self._loaded
        await self._settle(loaded)

    async def unload(self) -> None:
        """End the model's processes at once; it is no longer called by then."""
        async with self._lock:
            self._is_wanted, self._problem = False, ""
            self._on_change()
            await self._stop()

    async def replace(self, folder: ModelFolder) -> None:
        """Load the model as its folder is now. The old processes run until new ones have loaded it.

        If the new ones cannot load it, the old ones stay.
        """
        async with self._lock:
            if not self._is_wanted:
                self.folder = folder
            elif self._loaded is None or not self._loaded.was_ready:
                await self._begin(folder)
            else:
                await self._exchange(self._loaded, folder)

    @property
    def is_refused(self) -> bool:
        """Whether its document cannot be written, though it is loaded."""
        return bool(self._problem) and self._loaded is not None

    def check(self) -> None:
        """Raise UpstreamError if the model cannot be called because its document was refused."""
        if self._problem:
            raise self._cannot_be_loaded(self._problem)

    def refuse(self, reason: str) -> None:
        """Note that the model cannot be called."""
        self._problem = reason
        self._on_change()

    async def drain(self, seconds: float) -> None:
        """Wait until the model has no call in flight, but not longer than that."""
        if self._loaded is not None:
            await self._loaded.drain(seconds)

    async def stop(self) -> None:
        """End the processes, for good."""
        self._is_wanted = False
        retiring = dict(self._retiring)
        for task in retiring:
            task.cancel()
        await asyncio.gather(self._stop(), *(old.stop() for old in retiring.values()))

    def kill(self) -> None:
        """Kill the processes."""
        for loaded in (self._loaded, *self._retiring.values()):
            if loaded is not None:
                loaded.kill()

    def measure(self) -> None:
        """Measure the memory of the processes."""
        if self._loaded is not None:
            self._loaded.measure()

    async def _retire(self, old: LoadedModel) -> None:
        await old.drain(self._grace)
        await old.stop()

    async def _begin(self, folder: ModelFolder) -> None:
        before, self._loaded = self._loaded, None
        self.folder, self._problem, self._is_wanted = folder, "", True
        self._on_change()
        await _end(before)
        try:
            self._loaded, self._problem = await self._started(folder)
        except Exception:
            self._problem = "its processes could not be started; the log says why"
            self._on_change()
            raise
        if self._problem:
            log.error("runtime %s: %s", self.name, self._problem)
        self._on_change()

    async def _started(self, folder: ModelFolder) -> tuple[LoadedModel | None, str]:
        """Start the processes of a folder; return them, or the reason why there are none."""
        if folder.problem:
            return None, folder.problem
        try:
            return await self._start(self.name, folder), ""
        except NoEnvironment as error:
            return None, str(error)

    async def _exchange(self, old: LoadedModel, folder: ModelFolder) -> str:
        """Replace `old` by processes of a changed folder once they have loaded it; return the reason if they cannot."""
        new, problem = await self._started(folder)
        if new is None or not await new.settled():
            reason = problem if new is None else new.failure
            log.error("runtime %s: what changed cannot be loaded, so it goes on as before: %s", self.name, reason)
            await _end(new)
            return reason
        self.folder, self._loaded, self._problem = folder, new, ""
        self._on_change()
        retiring = self._background.start("replaced runtime", partial(self._retire, old))
        self._retiring[retiring] = old
        retiring.add_done_callback(self._retiring.pop)
        return ""

    async def _settle(self, loaded: LoadedModel | None) -> None:
        """Wait until the model is loaded; UpstreamError if it cannot be."""
        if loaded is None or not await loaded.settled():
            raise self._cannot_be_loaded(self._problem or (loaded and loaded.failure) or "it was unloaded meanwhile")

    def _cannot_be_loaded(self, reason: str) -> UpstreamError:
        return UpstreamError(f"The runtime of model {self.name} cannot be loaded: {reason}")

    async def _stop(self) -> None:
        loaded, self._loaded = self._loaded, None
        await _end(loaded)


async def _end(loaded: LoadedModel | None) -> None:
    if loaded is not None:
        await loaded.stop()
