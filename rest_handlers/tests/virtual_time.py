"""Tests of what happens when: an event loop whose clock jumps to the next timer instead of waiting for it."""

import asyncio
import functools
import selectors
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from opensearch_ml_stream.rest_handlers.http import response_lifecycle


class _Selector(selectors.DefaultSelector):
    """Finds nothing to wait for but timers, and lets their time pass at once."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready:
            assert timeout is not None, "every task waits for another one"
            self.now += timeout
        return ready


class _VirtualTimeLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._clock = _Selector()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now


def in_virtual_time(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run an async test, and the clocks of this room, in virtual time, which begins at 0."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        with asyncio.Runner(loop_factory=_VirtualTimeLoop) as runner, pytest.MonkeyPatch.context() as patch:
            patch.setattr(response_lifecycle, "monotonic", runner.get_loop().time)
            runner.run(test(*args, **kwargs))

    return run
