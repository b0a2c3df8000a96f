"""One process of a model, which follows a script: started, listened to, started again."""

import asyncio
import errno
import json
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from opensearch_ml_stream.extensions.runtimes.keeper import host_process, loaded_model
from opensearch_ml_stream.extensions.runtimes.keeper.host_process import Launch
from opensearch_ml_stream.extensions.runtimes.keeper.loaded_model import LoadedModel
from opensearch_ml_stream.plugin.background_tasks import BackgroundTasks

PROGRAM = Path(__file__).parent / "scripted_program.py"


@asynccontextmanager
async def loaded(
    tmp_path: Path, *scripts: str, processes: int = 1, background: BackgroundTasks | None = None
) -> AsyncIterator[LoadedModel]:
    marks = tmp_path / "marks"
    marks.mkdir()
    introduction = {"folder": str(tmp_path), "settings": {"scripts": scripts, "marks": str(marks)}}
    launch = Launch("m", sys.executable, {"PATH": os.environ["PATH"]}, introduction, PROGRAM)
    sockets = [str(tmp_path / f"1.{number}.sock") for number in range(processes)]
    model = LoadedModel(launch, sockets, lambda: None, background or BackgroundTasks())
    try:
        yield model
    finally:
        await model.stop()


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def starts(tmp_path: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted((tmp_path / "marks").iterdir()) if path.name != "child"]


def exists(pid: int) -> bool:
    """Whether the process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # the latter between open and read
        return False


async def test_a_process_is_told_its_model_and_says_when_it_is_loaded(tmp_path: Path) -> None:
    async with loaded(tmp_path, "newer ready busy stay") as model:
        assert await model.settled()
        assert model.description["platform"] == "test"
        [status] = model.statuses
        assert (status.ready, exists(status.pid)) == (True, True)
        await until(lambda: model.statuses[0].calls)
        assert (status.in_flight, status.calls, status.failures) == (1, 3, 1)
        model.measure()
        assert 1_000_000 < status.memory_bytes < 1_000_000_000
        [start] = starts(tmp_path)
        assert (start["folder"], start["socket"]) == (str(tmp_path), status.socket)
        assert set(start["environment"]) - {"LC_CTYPE"} == {"PATH"}
    assert not exists(status.pid)


async def test_a_process_that_ends_is_started_again_later_each_time(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_process, "FIRST_RETRY_SECONDS", 0.05)
    async with loaded(tmp_path, "ready end", "ready end", "ready stay") as model:
        await until(lambda: model.statuses[0].restarts == 2 and model.is_ready)
        assert model.was_ready
        assert len(starts(tmp_path)) == 3
    said = [message for message in caplog.messages if "started again" in message]
    assert said == [
        f"runtime m: a process of it ended with exit code 3; it is started again in {s} s" for s in (0.05, 0.1)
    ]


async def test_the_pauses_begin_anew_after_a_process_that_was_ready_for_long_not_after_one_that_loaded_for_long(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_process, "FIRST_RETRY_SECONDS", 0.05)
    monkeypatch.setattr(host_process, "SOUND_SECONDS", 0.0)
    async with loaded(tmp_path, "failed end", "end", "ready end", "ready stay") as model:
        await until(lambda: model.is_ready and model.statuses[0].restarts == 3)
    said = [message.rpartition(" in ")[2] for message in caplog.messages if "started again" in message]
    assert said == ["0.05 s", "0.1 s", "0.05 s"]


async def test_a_process_that_cannot_load_its_model_says_why(tmp_path: Path) -> None:
    async with loaded(tmp_path, "failed end", "ready stay") as model:
        assert not await model.settled()
        assert model.failure == "No module named 'x'"
        assert model.statuses[0].retry_in_seconds > 0
        await until(lambda: model.is_ready)
        assert model.failure == ""


async def test_a_process_that_is_killed_is_started_again(tmp_path: Path) -> None:
    async with loaded(tmp_path, "ready stay") as model:
        await model.settled()
        first = model.statuses[0].pid
        os.kill(first, 9)
        await until(lambda: model.is_ready and model.statuses[0].pid != first)
        assert model.statuses[0].restarts == 1


async def test_a_process_that_speaks_nonsense_is_ended_and_started_again(tmp_path: Path) -> None:
    async with loaded(tmp_path, "ready nonsense stay", "ready stay") as model:
        await until(lambda: len(starts(tmp_path)) == 2 and model.is_ready)


async def test_a_process_that_does_not_end_is_killed_with_what_it_has_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_process, "UNLOAD_SECONDS", 0.2)
    async with loaded(tmp_path, "child ready hang") as model:
        await model.settled()
        pid, child = model.statuses[0].pid, int((tmp_path / "marks" / "child").read_text())
        assert exists(child)
    await until(lambda: not exists(child))
    assert not exists(pid)


async def test_a_stop_that_is_asked_for_twice_lets_the_process_unload_its_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_process, "UNLOAD_SECONDS", 30)
    async with loaded(tmp_path, "ready stay unload") as model:
        assert await model.settled()
        pid = model.statuses[0].pid
        first = asyncio.create_task(model.stop())
        await until((tmp_path / "marks" / "unloading").exists)
        first.cancel()
        second = asyncio.create_task(model.stop())
        await asyncio.wait([first])
        (tmp_path / "may unload").touch()
        await second
        assert (tmp_path / "marks" / "unloaded").exists()
        assert not exists(pid)


async def test_all_processes_of_a_model_end_together(tmp_path: Path) -> None:
    async with loaded(tmp_path, "ready stay", processes=2) as model:
        await until(lambda: all(status.ready for status in model.statuses))
        pids = [status.pid for status in model.statuses]
        assert len(set(pids)) == 2
    assert [exists(pid) for pid in pids] == [False, False]


async def test_an_interpreter_that_cannot_be_run_is_told(tmp_path: Path) -> None:
    model = LoadedModel(
        Launch("m", str(tmp_path / "python"), {}, {}), [str(tmp_path / "s")], lambda: None, BackgroundTasks()
    )
    try:
        assert not await model.settled()
        assert model.failure == f"a process of it cannot be started: {tmp_path}/python: No such file or directory"
    finally:
        await model.stop()


@pytest.mark.parametrize(
    ("owner", "name", "number"),
    [
        (socket, "socketpair", errno.EMFILE),
        (asyncio, "create_subprocess_exec", errno.EAGAIN),
        (asyncio, "create_subprocess_exec", errno.EMFILE),
    ],
)
async def test_a_process_that_the_system_refuses_is_started_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, number: int
) -> None:
    monkeypatch.setattr(host_process, "FIRST_RETRY_SECONDS", 0.01)
    real, refusals = getattr(owner, name), [OSError(number, os.strerror(number))]

    def refuse_once(*arguments: Any, **named: Any) -> Any:
        if refusals:
            raise refusals.pop()
        return real(*arguments, **named)

    monkeypatch.setattr(owner, name, refuse_once)
    async with loaded(tmp_path, "ready stay") as model:
        assert not await model.settled()
        assert os.strerror(number) in model.failure
        await until(lambda: model.is_ready)
        assert model.failure == ""


async def test_what_fails_beside_the_calls_of_a_process_is_counted(tmp_path: Path) -> None:
    background = BackgroundTasks()
    async with loaded(tmp_path, "ready trouble stay", background=background):
        await until(lambda: background.failures.counts().get("tasks of runtimes"))
    assert background.failures.problems() == [
        "The background task tasks of runtimes has failed (KeyError) and is tried again; see the log"
    ]


async def test_draining_waits_for_calls_in_flight_but_not_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loaded_model, "_FIGURES_SECONDS", 0.001)
    async with loaded(tmp_path, "ready busy stay") as model:
        await until(lambda: model.statuses[0].in_flight)
        await model.drain(0.01)
        draining = asyncio.create_task(model.drain(3600))
        await asyncio.sleep(0.01)
        assert not draining.done()
        model.statuses[0].in_flight = 0
        await draining
