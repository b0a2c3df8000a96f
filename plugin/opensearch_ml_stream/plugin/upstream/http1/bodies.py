"""HTTP/1.1 response bodies, one class for each way to end (RFC 9112, section 6): bytes in, the body's bytes out."""

import re
from typing import Protocol

import httptools

MAX_OVERHEAD_BYTES = 64 * 1024  # of extensions or trailers in a row, which llhttp itself does not bound

_SIZE_LINE = re.compile(rb"([1-9a-fA-F][0-9a-fA-F]{0,7})\r\n")  # not of the last chunk
_END = b"\r\n0\r\n\r\n"  # of the last chunk but one, and of the body
_CHUNKED_HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


class MalformedBody(Exception):
    """The bytes are not a body in its announced form; the message holds none of them.

    `data` are the body's bytes that came before the fault: a fault must not lose the text that was read with it.
    """

    def __init__(self, problem: str, data: bytes = b"") -> None:
        super().__init__(problem)
        self.data = data


class Body(Protocol):
    """A body as it is received."""

    @property
    def done(self) -> bool:
        """Whether the body is complete."""
        ...

    @property
    def excess(self) -> bool:
        """Whether bytes came after the end of the body."""
        ...

    def feed(self, data: bytes) -> bytes:
        """Return the part of `data` that belongs to the body. MalformedBody, the last call, if it cannot be parsed."""
        ...

    def eof(self) -> bool:
        """Note the end of the connection; return whether the body is complete with it."""
        ...


class LengthBody:
    """A body with `Content-Length`."""

    __slots__ = ("_remaining", "done", "excess")

    def __init__(self, length: int) -> None:
        self._remaining = length
        self.done = length == 0
        self.excess = False

    def feed(self, data: bytes) -> bytes:
        """See Body.feed."""
        remaining = self._remaining - len(data)
        if remaining > 0:
            self._remaining = remaining
            return data
        data = data if remaining == 0 else data[: self._remaining]
        self.excess = self.excess or remaining < 0
        self._remaining = 0
        self.done = True
        return data

    def eof(self) -> bool:
        """See Body.eof."""
        return self.done


class CloseBody:
    """A body with neither length nor chunks: it ends with the connection."""

    __slots__ = ("done", "excess")

    def __init__(self) -> None:
        self.done = False
        self.excess = False

    def feed(self, data: bytes) -> bytes:
        """See Body.feed."""
        return data

    def eof(self) -> bool:
        """See Body.eof."""
        self.done = True
        return True


class _ChunkCallbacks:
    """Callbacks of httptools. Apart from ChunkedBody, so that parser and body are no reference cycle."""

    __slots__ = ("done", "excess", "on_body", "parts", "trailers")

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.trailers: list[tuple[bytes, bytes]] = []
        self.on_body = self.parts.append
        self.done = False
        self.excess = False

    def on_message_begin(self) -> None:
        self.excess = self.done  # a second message, behind the first

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.done:
            self.trailers.append((name.lower(), value))

    def on_message_complete(self) -> None:
        self.done = True


class ChunkedBody:
    """A body with `Transfer-Encoding: chunked` (RFC 9112, section 7.1). Extensions are skipped, trailers kept.

    llhttp parses it, in C, from the first read on that is not one whole chunk without extensions, alone or with the end
    of the body behind it. Tokens are flushed one by one, so most streams have no other reads.
    """

    __slots__ = (
        "_at_chunk_start", "_callbacks", "_chunk_length", "_overhead", "_parser", "_size_line", "done", "excess",
    )  # fmt: skip

    def __init__(self) -> None:
        self._callbacks: _ChunkCallbacks | None = None
        self._parser: httptools.HttpResponseParser | None = None
        self._overhead = 0
        self._at_chunk_start = True  # and llhttp has seen nothing
        self._size_line = b""  # of the last read that was one whole chunk
        self._chunk_length = 0  # the length of that read
        self.done = False
        self.excess = False

    @property
    def trailers(self) -> list[tuple[bytes, bytes]]:
        """The trailers, complete when the body is; names are in lower case."""
        return [] if self._callbacks is None else self._callbacks.trailers

    def feed(self, data: bytes) -> bytes:
        """See Body.feed."""
        if self._at_chunk_start:
            if len(data) == self._chunk_length and data.startswith(self._size_line) and data.endswith(b"\r\n"):
                return data[len(self._size_line) : -2]
            if (size_line := _SIZE_LINE.match(data)) is not None:
                begin, end = size_line.end(), size_line.end() + int(size_line[1], 16)
                behind = data[end : end + len(_END) + 1]
                if behind == b"\r\n":
                    self._size_line, self._chunk_length = data[:begin], len(data)
                    return data[begin:end]
                if behind == _END:
                    self.done, self._at_chunk_start = True, False
                    return data[begin:end]
        return self._parse(data)

    def eof(self) -> bool:
        """See Body.eof."""
        return self.done

    def _parse(self, data: bytes) -> bytes:
        if self.done:
            self.excess = self.excess or bool(data)
            return b""
        if self._callbacks is None or self._parser is None:
            self._at_chunk_start = False
            callbacks = self._callbacks = _ChunkCallbacks()
            self._parser = httptools.HttpResponseParser(callbacks)
            self._parser.feed_data(_CHUNKED_HEAD)
            callbacks.trailers.clear()  # of the head there is none
        callbacks = self._callbacks
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            if not callbacks.done:
                raise MalformedBody("its chunks cannot be read", b"".join(callbacks.parts)) from None
            callbacks.excess = True
        self.done, self.excess = callbacks.done, callbacks.excess
        parts = callbacks.parts
        if parts:
            data = parts[0] if len(parts) == 1 else b"".join(parts)
            parts.clear()
            self._overhead = 0
            return data
        self._overhead += len(data)
        if self._overhead > MAX_OVERHEAD_BYTES and not self.done:
            raise MalformedBody("its chunks have too much beside their data")
        return b""
