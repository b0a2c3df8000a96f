"""The three ways in which an HTTP/1.1 body ends (RFC 9112, section 6): bytes in, the body's bytes out.

`feed` takes what a read gave and returns the body's part of it. `done` says that the body is complete, `excess`
that more than the body came. `eof` says whether the body may end where the connection does.
"""

from typing import Protocol

import httptools

MAX_OVERHEAD_BYTES = 64 * 1024  # of extensions or trailers in a row, which llhttp itself does not bound

_CHUNKED_HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


class MalformedBody(Exception):
    """The bytes are not a body in its announced form; the text says why in our own words."""


class Body(Protocol):
    @property
    def done(self) -> bool: ...

    @property
    def excess(self) -> bool: ...

    def feed(self, data: bytes) -> bytes: ...

    def eof(self) -> bool: ...


class LengthBody:
    """`Content-Length`."""

    __slots__ = ("_left", "done", "excess")

    def __init__(self, length: int) -> None:
        self._left = length
        self.done = length == 0
        self.excess = False

    def feed(self, data: bytes) -> bytes:
        left = self._left - len(data)
        if left > 0:
            self._left = left
            return data
        data = data if left == 0 else data[: self._left]
        self.excess = self.excess or left < 0
        self._left = 0
        self.done = True
        return data

    def eof(self) -> bool:
        return self.done


class CloseBody:
    """Neither length nor chunks: the connection's end is the body's."""

    __slots__ = ("done", "excess")

    def __init__(self) -> None:
        self.done = False
        self.excess = False

    def feed(self, data: bytes) -> bytes:
        return data

    def eof(self) -> bool:
        self.done = True
        return True


class _Chunks:
    """What httptools calls. Apart from ChunkedBody, so that parser and body are no reference cycle."""

    __slots__ = ("done", "excess", "on_body", "parts")

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.on_body = self.parts.append
        self.done = False
        self.excess = False

    def on_message_begin(self) -> None:
        self.excess = self.done  # a second message, behind the first

    def on_message_complete(self) -> None:
        self.done = True


class ChunkedBody:
    """`Transfer-Encoding: chunked`. Extensions and trailers are read over.

    llhttp's reading, in C. Before it stands one shortcut: tokens are much of a size, so a read is most often one whole
    chunk with the same size line as the chunk before; that needs no parser.
    """

    __slots__ = ("_boundary", "_chunks", "_head", "_overhead", "_parser", "_whole", "done")

    def __init__(self) -> None:
        self._chunks = _Chunks()
        self._overhead = 0
        self._parser = httptools.HttpResponseParser(self._chunks)
        self._parser.feed_data(_CHUNKED_HEAD)
        self._boundary = True  # what comes next is a chunk's beginning
        self._head = b""  # the size line of the last read that was one whole chunk
        self._whole = 0  # the length of that read
        self.done = False

    @property
    def excess(self) -> bool:
        return self._chunks.excess

    def feed(self, data: bytes) -> bytes:
        """MalformedBody if these are no chunks."""
        if len(data) == self._whole and self._boundary and data.startswith(self._head) and data.endswith(b"\r\n"):
            return data[len(self._head) : -2]
        return self._parse(data)

    def eof(self) -> bool:
        return self.done

    def _parse(self, data: bytes) -> bytes:
        chunks = self._chunks
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            if not chunks.done:
                raise MalformedBody("its chunks cannot be read") from None
            chunks.excess = True
        self.done = chunks.done
        self._boundary = self._boundary and _is_one_chunk(data)
        if self._boundary:
            self._head = data[: data.index(b"\n") + 1]
            self._whole = len(data)
        parts = chunks.parts
        if parts:
            data = parts[0] if len(parts) == 1 else b"".join(parts)
            parts.clear()
            self._overhead = 0
            return data
        self._overhead += len(data)
        if self._overhead > MAX_OVERHEAD_BYTES:
            raise MalformedBody("its chunks have too much beside their data")
        return b""


def _is_one_chunk(data: bytes) -> bool:
    """Whether bytes that llhttp has taken, from a chunk's beginning on, are one whole chunk that is not the last."""
    size, found, rest = data.partition(b"\r\n")
    if not found or not size.isalnum():
        return False
    return int(size, 16) == len(rest) - 2 > 0
