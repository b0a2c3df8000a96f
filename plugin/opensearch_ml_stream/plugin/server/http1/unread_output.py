"""How long a client has taken nothing of what it is sent."""


class UnreadOutput:
    """The size of a connection's write buffer, looked at once a second while the client is slow."""

    __slots__ = ("_since", "_size")

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew: the client reads."""
        self._size: int | None = None
        self._since = 0.0

    def seconds(self, size: int, now: float) -> float:
        """Return for how long the buffer has had this size, by the loop's clock."""
        if size != self._size:
            self._size, self._since = size, now
        return now - self._since
