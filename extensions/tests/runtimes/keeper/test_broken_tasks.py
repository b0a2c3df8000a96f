"""Each background task of the keeper is broken once, and is told of, and goes on."""

import asyncio
import errno
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from opensearch_ml_stream.extensions.runtimes.extension import RuntimesSettings
from opensearch_ml_stream.extensions.runtimes.keeper import keeper as keeper_module
from opensearch_ml_stream.extensions.runtimes.keeper.host_process import HostProcess, Launch
from opensearch_ml_stream.extensions.runtimes.keeper.keeper import Keeper, open_keeper
from opensearch_ml_stream.extensions.runtimes.keeper.kept_model import KeptModel
from opensearch_ml_stream.extensions.runtimes.keeper.loaded_model import LoadedModel
from opensearch_ml_stream.extensions.runtimes.keeper.model_folders import ModelFolder
from opensearch_ml_stream.extensions.runtimes.keeper.runtime_documents import RuntimeDocuments
from opensearch_ml_stream.extensions.runtimes.service.status import STATUS_FILE, State, read_status, write_status
from opensearch_ml_stream.plugin.background_tasks import BackgroundTasks
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.plugin.store import Index
from opensearch_ml_stream.plugin.store.sqlite_store import SQLiteStore
from opensearch_ml_stream.rest_handlers.base_path import Paths
from tests.background.broken_task import BrokenTask, until
from tests.registry.registry_setup import closing
from tests.runtimes.keeper.test_host_process import PROGRAM

MODEL = {"implementation": "openai", "parameters": {"extra": {"model_id": "gpt"}}}


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> BrokenTask:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    for name in ("STATUS_SECONDS", "POLL_SECONDS"):
        monkeypatch.setattr(keeper_module, name, 0.01)
    return BrokenTask(monkeypatch, caplog)


def add(folder: Path, name: str) -> None:
    (model := folder / "models" / name).mkdir(parents=True)
    (model / "model-settings.json").write_text(json.dumps({"name": name, **MODEL}))


@asynccontextmanager
async def kept(folder: Path, background: BackgroundTasks) -> AsyncIterator[Keeper]:
    """A keeper of a provider's model, which has no processes."""
    add(folder, "first")
    (folder / "runtimes").mkdir()
    section = RuntimesSettings(models=str(folder / "models"), models_watch=True)
    settings = Settings(store=f"sqlite:///{folder / 'store.db'}").with_section(section)
    async with open_keeper(settings, folder / "runtimes", Paths(), background) as keeper:
        yield keeper


def state(folder: Path, name: str = "first") -> State | None:
    status = read_status(folder / "runtimes" / STATUS_FILE).get(name)
    return None if status is None else status.state


@pytest.mark.breaks("runtime status")
async def test_the_status_is_written_again_though_figures_could_not_be_read(broken: BrokenTask, tmp_path: Path) -> None:
    broken.breaks(KeptModel, "measure")
    async with kept(tmp_path, broken.background):
        await broken.recovers("runtime status")
        await until(lambda: state(tmp_path) == "READY")


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), "OSError: No space left on device"),
        (OSError(errno.EMFILE, os.strerror(errno.EMFILE)), "OSError: Too many open files"),
        (KeyError("a secret"), "KeyError"),
    ],
)
async def test_the_keeper_goes_on_while_its_status_cannot_be_written(
    broken: BrokenTask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, shown: str
) -> None:
    is_full = True

    def write(*arguments: object) -> None:
        if is_full:
            raise error
        write_status(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(keeper_module, "write_status", write)
    async with kept(tmp_path, broken.background) as keeper:
        await until(broken.background.failures.problems)
        add(tmp_path, "second")
        await keeper.obey("find", "second")
        assert broken.background.failures.problems() == [
            f"The background task runtime status has failed ({shown}) and is tried again; see the log"
        ]
        is_full = False
        await until(lambda: (state(tmp_path), state(tmp_path, "second")) == ("READY", "READY"))


@pytest.mark.breaks("runtime documents")
async def test_documents_are_written_though_one_has_failed(broken: BrokenTask, tmp_path: Path) -> None:
    broken.breaks(RuntimeDocuments, "put")
    async with kept(tmp_path, broken.background), closing(SQLiteStore(str(tmp_path / "store.db"))) as store:
        await broken.recovers("runtime documents")
        async with asyncio.timeout(20):
            while await _state_in(store) != "DEPLOYED":  # noqa: ASYNC110 - another connection writes it
                await asyncio.sleep(0.01)


async def _state_in(store: SQLiteStore) -> object:
    document = await store.get(Index.MODEL, "runtime-first")
    return None if document is None else document.source["model_state"]


@pytest.mark.breaks("models folder")
async def test_folders_are_watched_though_a_look_has_failed(broken: BrokenTask, tmp_path: Path) -> None:
    broken.breaks(keeper_module, "look", at=2)
    async with kept(tmp_path, broken.background):
        await broken.recovers("models folder")
        add(tmp_path, "second")
        await until(lambda: state(tmp_path, "second") == "READY")


@pytest.mark.parametrize(("owner", "name"), [(os, "scandir"), (Path, "read_text")])
async def test_no_model_is_given_up_while_its_folder_cannot_be_looked_at(
    broken: BrokenTask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: object, name: str
) -> None:
    """A keeper without descriptors sees no files, and none of them has gone."""

    def refuse(*_: object) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    async with kept(tmp_path, broken.background) as keeper:
        await until(lambda: state(tmp_path) == "READY")
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, refuse)
            await until(lambda: broken.background.failures.counts()["models folder"] > 3)
        assert state(tmp_path) == "READY"
        add(tmp_path, "second")
        await until(lambda: state(tmp_path, "second") == "READY")
        await keeper.obey("load", "first")


async def test_a_new_folder_is_loaded_though_following_it_has_failed(broken: BrokenTask, tmp_path: Path) -> None:
    broken.breaks(Keeper, "_follow")
    async with kept(tmp_path, broken.background):
        add(tmp_path, "second")
        await broken.recovers("models folder")
        await until(lambda: state(tmp_path, "second") == "READY")


@pytest.mark.breaks("runtime loading")
async def test_a_model_is_loaded_though_its_start_has_failed(broken: BrokenTask, tmp_path: Path) -> None:
    broken.breaks(keeper_module, "LoadedModel")
    async with kept(tmp_path, broken.background):
        await broken.recovers("runtime loading")
        await until(lambda: state(tmp_path) == "READY")


def launch(folder: Path) -> Launch:
    (folder / "marks").mkdir(exist_ok=True)
    settings = {"scripts": ["ready stay"], "marks": str(folder / "marks")}
    return Launch("m", sys.executable, {"PATH": os.environ["PATH"]}, {"settings": settings}, PROGRAM)


@pytest.mark.breaks("runtime process")
async def test_a_process_is_started_though_keeping_it_has_failed(broken: BrokenTask, tmp_path: Path) -> None:
    broken.breaks(HostProcess, "_live")
    model = LoadedModel(launch(tmp_path), [str(tmp_path / "1.sock")], lambda: None, broken.background)
    try:
        assert not await model.settled()
        assert model.failure == "a process of it could not be kept (Defect); the log says where"
        await until(lambda: model.is_ready)
        await broken.recovers("runtime process")
    finally:
        await model.stop()


@pytest.mark.breaks("replaced runtime")
async def test_replaced_processes_end_though_waiting_for_their_calls_has_failed(
    broken: BrokenTask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def start(name: str, folder: ModelFolder) -> LoadedModel:
        return LoadedModel(launch(tmp_path), [str(tmp_path / "1.sock")], lambda: None, broken.background)

    broken.breaks(LoadedModel, "drain")
    folder = ModelFolder(tmp_path, {"name": "m"}, "", ())
    model = KeptModel("m", folder, start, lambda: None, 0.0, broken.background)
    try:
        await model.load()
        await model.load_anew(ModelFolder(tmp_path, {"name": "m", "version": "2"}, "", ()))
        await broken.recovers("replaced runtime")
    finally:
        await model.stop()
