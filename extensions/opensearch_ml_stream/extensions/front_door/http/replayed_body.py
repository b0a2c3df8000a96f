"""A request body that is read once to see whose request it is, and once more by whoever handles it."""

from collections import deque

from starlette.types import Message, Receive


class ReplayedBody:
    """Keeps what a first reader receives; `again` gives it to a second, and after that what still comes."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._kept: deque[Message] = deque()

    async def first(self) -> Message:
        """Receive a message for the first reader."""
        message = await self._receive()
        self._kept.append(message)
        return message

    async def again(self) -> Message:
        """Receive a message for the second reader."""
        return self._kept.popleft() if self._kept else await self._receive()
