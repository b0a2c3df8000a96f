"""A model whose files change: what is loaded anew, what goes on, and what is told. Its processes follow scripts."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import pytest

from opensearch_ml_stream.connectors.errors import Unavailable, UpstreamError
from opensearch_ml_stream.extensions.runtimes.keeper.host_process import Launch
from opensearch_ml_stream.extensions.runtimes.keeper.kept_model import KeptModel
from opensearch_ml_stream.extensions.runtimes.keeper.loaded_model import LoadedModel
from opensearch_ml_stream.extensions.runtimes.keeper.model_folders import ModelFolder
from opensearch_ml_stream.plugin.background_tasks import BackgroundTasks

PROGRAM = Path(__file__).parent / "scripted_program.py"
GOOD, BROKEN = "ready stay", "failed end"


@asynccontextmanager
async def kept(
    tmp_path: Path, folder: ModelFolder, on_change: Callable[[], None] = lambda: None
) -> AsyncIterator[KeptModel]:
    numbers = count()

    async def start(name: str, folder: ModelFolder) -> LoadedModel:
        number = next(numbers)
        marks = tmp_path / f"marks{number}"
        marks.mkdir()
        settings = {"scripts": [folder.settings["script"]], "marks": str(marks)}
        launch = Launch(name, sys.executable, {"PATH": os.environ["PATH"]}, {"settings": settings}, PROGRAM)
        return LoadedModel(launch, [str(tmp_path / f"{number}.sock")], on_change, BackgroundTasks())

    model = KeptModel("m", folder, start, on_change, 0.0, BackgroundTasks())
    try:
        yield model
    finally:
        await model.stop()


def folder(script: str = GOOD, changed: int = 0, problem: str = "") -> ModelFolder:
    return ModelFolder(Path("/models/m"), {"name": "m", "script": script}, problem, (("model.py", changed, 1),))


def pid(model: KeptModel) -> int:
    [process] = model.status().processes
    return process.pid


async def test_what_has_not_changed_goes_on_as_it_is(tmp_path: Path) -> None:
    async with kept(tmp_path, folder()) as model:
        await model.load()
        process = pid(model)
        await model.load_anew(folder())
        assert (model.state, pid(model)) == ("READY", process)


async def test_other_files_and_other_settings_are_loaded_into_new_processes(tmp_path: Path) -> None:
    async with kept(tmp_path, folder()) as model:
        await model.load()
        processes = [pid(model)]
        for now in (folder(changed=1), folder("ready idle stay", changed=1)):
            await model.load_anew(now)
            assert (model.state, model.folder) == ("READY", now)
            processes.append(pid(model))
    assert len(set(processes)) == 3


@pytest.mark.parametrize("broken", [folder(BROKEN, 1), folder(changed=1, problem="No module named 'x'")])
async def test_a_change_that_cannot_be_loaded_is_told_each_time_while_the_model_goes_on(
    tmp_path: Path, broken: ModelFolder
) -> None:
    async with kept(tmp_path, folder()) as model:
        await model.load()
        process = pid(model)
        for _ in range(2):
            with pytest.raises(UpstreamError, match=r"No module named 'x'\. It goes on as before"):
                await model.load_anew(broken)
            assert (model.state, model.status().reason, pid(model)) == ("READY", "", process)
        await model.load_anew(folder(changed=2))
        assert pid(model) != process


@pytest.mark.parametrize("broken", [folder(BROKEN), folder(problem="No module named 'x'")])
async def test_a_model_that_failed_is_loaded_at_once_when_it_was_repaired(tmp_path: Path, broken: ModelFolder) -> None:
    async with kept(tmp_path, broken) as model:
        for _ in range(2):
            with pytest.raises(UpstreamError, match="No module named 'x'"):
                await model.load_anew(broken)
            assert model.state == "FAILED"
        await model.load_anew(folder(changed=1))
        assert (model.state, model.status().reason) == ("READY", "")


async def test_a_model_that_was_unloaded_is_loaded_as_it_is_now(tmp_path: Path) -> None:
    async with kept(tmp_path, folder()) as model:
        await model.load()
        await model.unload()
        await model.load_anew(folder(changed=1))
        assert (model.state, model.folder.files[0][1]) == ("READY", 1)


async def test_from_load_to_load_a_model_is_in_one_state_after_the_other_and_in_no_other(tmp_path: Path) -> None:
    """Nobody is told that it is unloaded while it is only loaded anew, or that it can be called while it ends."""
    states: list[str] = []

    def look() -> None:
        if states[-1:] != [model.state]:
            states.append(model.state)

    async with kept(tmp_path, folder(BROKEN), look) as model:
        with pytest.raises(UpstreamError):
            await model.load()
        await model.load_anew(folder(changed=1))
        await model.load_anew(folder(changed=2))
        await model.unload()
        await model.load_anew(folder(changed=2))
    assert states == ["LOADING", "FAILED", "LOADING", "READY", "UNLOADED", "LOADING", "READY"]


async def test_a_model_that_is_being_unloaded_has_no_handlers_any_more(tmp_path: Path) -> None:
    shown: list[tuple[str, int]] = []
    async with kept(tmp_path, folder(), lambda: shown.append((model.state, len(model.status().handlers)))) as model:
        await model.load()
        await model.unload()
    assert shown[-1] == ("UNLOADED", 0) and ("READY", 1) in shown


async def test_predictions_wait_for_a_load_of_their_own_and_for_no_other(tmp_path: Path) -> None:
    async with kept(tmp_path, folder("idle ready stay")) as model:
        with pytest.raises(Unavailable, match="is loading; send the request again later"):
            await model.ensure()
        await model.load()
        await model.unload()
        await asyncio.gather(*(model.ensure() for _ in range(3)))
        assert model.state == "READY"
