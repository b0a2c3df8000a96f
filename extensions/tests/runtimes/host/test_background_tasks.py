"""A task of a model's process that fails: logged, told to the keeper, tried again."""

import asyncio
import json
import os
import socket
from collections.abc import Iterator

import pytest

from opensearch_ml_stream.runtimes.host import background_tasks
from opensearch_ml_stream.runtimes.host.background_tasks import start_watched
from opensearch_ml_stream.runtimes.host.failures import FailureLog
from opensearch_ml_stream.runtimes.host.keeper_socket import Keeper


class Panic(BaseException):
    """As what a library in Rust raises."""


@pytest.fixture
def ends() -> Iterator[tuple[Keeper, socket.socket]]:
    """The process's keeper, and the keeper's end of their socket."""
    ours, theirs = socket.socketpair()
    keeper = Keeper(os.dup(theirs.fileno()))
    with ours, theirs:
        yield keeper, ours
        keeper._socket.close()


async def test_a_task_that_fails_is_logged_told_and_tried_again_until_it_ends(
    ends: tuple[Keeper, socket.socket], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background_tasks, "FIRST_PAUSE_SECONDS", 0.001)
    keeper, told = ends
    turns = iter([KeyError("x"), Panic("y"), 0.0, None])

    async def turn() -> float | None:
        if isinstance(outcome := next(turns), BaseException):
            raise outcome
        return outcome

    await asyncio.wait_for(start_watched("figures", turn, FailureLog("m"), keeper), 20)
    assert [json.loads(line) for line in told.recv(4096).splitlines()] == [
        {"event": "task_failed", "error": "KeyError"},
        {"event": "task_failed", "error": "Panic"},
    ]
    log = capsys.readouterr().err
    assert "runtime m: the task figures raised KeyError: 'x'" in log
    assert "raise outcome" in log


async def test_a_task_that_is_cancelled_ends(ends: tuple[Keeper, socket.socket]) -> None:
    async def turn() -> float | None:
        await asyncio.sleep(3600)
        return None

    task = start_watched("figures", turn, FailureLog("m"), ends[0])
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
