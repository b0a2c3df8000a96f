"""One task is broken once: what it calls raises an error, and does its work the next time."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

from opensearch_ml_stream.plugin import background_tasks
from opensearch_ml_stream.plugin.background_tasks import BackgroundTasks


class Defect(Exception):
    """An error that nobody expects; its message may quote a request."""


class BrokenTask:
    """The `background` whose task of that name is broken; `calls` counts what it calls, the defect included."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
        monkeypatch.setattr(background_tasks, "FIRST_PAUSE_SECONDS", 0.001)
        monkeypatch.setattr(background_tasks, "SOUND_SECONDS", 0.1)
        caplog.set_level(logging.INFO)
        self._monkeypatch, self._caplog = monkeypatch, caplog
        self.background = BackgroundTasks()
        self.calls = 0
        self._breaks_at = 0

    def breaks(self, owner: Any, attribute: str, at: int = 1) -> None:
        """Let the owner's function raise an error when it is called for the `at`th time."""
        self._breaks_at = at
        real = getattr(owner, attribute)

        def called(*arguments: Any, **named: Any) -> Any:
            self.calls += 1
            if self.calls == at:
                raise Defect("a secret prompt")
            return real(*arguments, **named)

        self._monkeypatch.setattr(owner, attribute, called)

    async def recovers(self, name: str) -> None:
        """Return once the task goes on; its failure was logged, counted, and is a problem to be told of."""
        await until(lambda: f"background task {name}: works again" in self._caplog.messages)
        assert self.calls > self._breaks_at
        self.has_told(name)

    def has_told(self, name: str) -> None:
        [failure] = [each for each in self._caplog.records if each.exc_info]
        assert failure.exc_info is not None and failure.exc_info[0] is Defect
        assert failure.getMessage().startswith(f"background task {name}: failed; it is tried again in ")
        assert self.background.failures.counts()[name] == 1
        assert self.background.failures.problems() == [
            f"The background task {name} has failed (Defect) and is tried again; see the log"
        ]


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.001)
