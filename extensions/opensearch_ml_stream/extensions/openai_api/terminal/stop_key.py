"""Ctrl-C while an answer comes."""

import signal
import sys
import termios
from collections.abc import Iterator
from contextlib import AbstractContextManager
from types import FrameType, TracebackType
from typing import Any, Self, TypeVar

T = TypeVar("T")

_LOCAL_MODES = 3  # of what tcgetattr returns


class StopKey(AbstractContextManager["StopKey"]):
    """Ends the reading of what comes, and never cuts a drawing of it in two.

    While it is entered what is typed is not shown, and read at the next prompt.
    """

    def __init__(self) -> None:
        self.is_pressed = False
        self._is_reading = False
        self._handler_before: Any = signal.SIG_DFL
        self._modes_before: list[Any] = []

    def __enter__(self) -> Self:
        self._modes_before = termios.tcgetattr(sys.stdin)
        silent = list(self._modes_before)
        silent[_LOCAL_MODES] &= ~termios.ECHO
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, silent)
        self._handler_before = signal.signal(signal.SIGINT, self._press)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        signal.signal(signal.SIGINT, self._handler_before)
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self._modes_before)

    def until_pressed(self, items: Iterator[T]) -> Iterator[T]:
        """Yield the items that come before the key is pressed."""
        while True:
            try:
                self._is_reading = (
                    True  # from here on the key ends a reading, so what was pressed before it is looked at
                )
                if self.is_pressed:
                    return
                for item in items:
                    self._is_reading = False
                    yield item
                    break
                else:
                    return
            except KeyboardInterrupt:
                return
            finally:
                self._is_reading = False

    def _press(self, number: int, frame: FrameType | None) -> None:
        self.is_pressed = True
        if self._is_reading:
            raise KeyboardInterrupt
