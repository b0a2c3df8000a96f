"""A cache of parsed request heads: clients send the same one many times, except for the length of the body.

Equal bytes are parsed to an equal head, so llhttp need not parse them again. A head is looked up without the digits of
its `Content-Length`, and only for a request that has arrived whole in one read.
"""

from typing import Any

MAX_HEADS = 64  # in each of two generations
MAX_HEAD_SIZE = 4096  # bytes
GENERATION_SECONDS = 10.0  # heads hold credentials, so none is kept long

_LENGTH = b"\r\nContent-Length: "
_LOWER_LENGTH = b"\r\ncontent-length: "
_MAX_DIGITS = 9
_NAME = b"content-length"


class RequestHead:
    """A parsed request head. It may be shared by many requests, so each copies the scope.

    `scope` is ASGI's, without the addresses of the connection; `foreign_id` is the id that the client sent, or "".
    """

    __slots__ = ("expects_continue", "foreign_id", "keep_alive", "scope")

    def __init__(self, scope: dict[str, Any], keep_alive: bool, expects_continue: bool, foreign_id: str) -> None:
        self.scope = scope
        self.keep_alive = keep_alive
        self.expects_continue = expects_continue
        self.foreign_id = foreign_id

    def scope_with_length(self, length: bytes) -> dict[str, Any]:
        """Return a copy of the scope, for a body of this length."""
        scope = self.scope.copy()
        scope["headers"] = [pair if pair[0] != _NAME else (_NAME, length) for pair in scope["headers"]]
        return scope


def parts_of_whole_request(data: bytes) -> tuple[bytes, bytes, int] | None:
    """Split a whole request into the key of its head, the digits of its length, and the offset of its body.

    None if the data is not one whole request with a `Content-Length`. Whether it is valid is for a parser to say.
    """
    end = data.find(b"\r\n\r\n")
    if not 0 < end <= MAX_HEAD_SIZE:
        return None
    start = data.find(_LENGTH, 0, end)
    if start < 0 and (start := data.find(_LOWER_LENGTH, 0, end)) < 0:
        return None
    start += len(_LENGTH)
    stop = data.find(b"\r\n", start)
    length = data[start:stop]
    if not length.isdigit() or len(length) > _MAX_DIGITS or b"%d" % (len(data) - end - 4) != length:
        return None
    return data[:start] + data[stop:end], length, end + 4


class HeadCache:
    """The heads that all connections of a worker have sent in the last seconds."""

    def __init__(self) -> None:
        self._young: dict[bytes, RequestHead] = {}
        self._old: dict[bytes, RequestHead] = {}
        self._aged = 0.0

    def find(self, key: bytes) -> RequestHead | None:
        """Return the head with that key, None if it is not cached."""
        known = self._young.get(key)
        if known is None and (known := self._old.get(key)) is not None:
            self.remember(key, known)
        return known

    def remember(self, key: bytes, head: RequestHead) -> None:
        """Add a parsed head."""
        if len(self._young) >= MAX_HEADS:
            self._age()
        self._young[key] = head

    def expire(self, now: float) -> None:
        """Drop heads that were not sent for some time; called once a second, with the loop's time."""
        if now - self._aged >= GENERATION_SECONDS:
            self._aged = now
            self._age()

    def _age(self) -> None:
        self._old, self._young = self._young, {}
