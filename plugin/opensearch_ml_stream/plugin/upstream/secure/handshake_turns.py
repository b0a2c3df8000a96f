"""HandshakeTurns: one step of one TLS handshake in a round of the event loop, so that a burst stalls no stream."""

import asyncio
from collections import deque
from collections.abc import Callable


class HandshakeTurns:
    """Steps of handshakes that wait for their turn. A step costs up to a millisecond of CPU.

    Those that go on come before those that begin: so fewer are in progress, and hold memory, at a time.
    """

    def __init__(self) -> None:
        self._beginning: deque[Callable[[], None]] = deque()
        self._going_on: deque[Callable[[], None]] = deque()
        self._scheduled = False

    def begin(self, step: Callable[[], None]) -> None:
        """Run the first step of a handshake when its turn comes."""
        self._beginning.append(step)
        self._schedule()

    def go_on(self, step: Callable[[], None]) -> None:
        """Run a further step of a handshake when its turn comes."""
        self._going_on.append(step)
        self._schedule()

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._take_turn)

    def _take_turn(self) -> None:
        self._scheduled = False
        step = (self._going_on or self._beginning).popleft()
        if self._going_on or self._beginning:
            self._schedule()
        step()
