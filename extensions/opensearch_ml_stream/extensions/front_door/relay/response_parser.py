"""Parses the cluster's response heads, informational ones too, with every header as it came."""

from dataclasses import dataclass

from opensearch_ml_stream.extensions.front_door.relay.hop_by_hop import Headers
from opensearch_ml_stream.plugin.upstream.http1.bodies import Body, LengthBody
from opensearch_ml_stream.plugin.upstream.http1.response_head import (
    Head,
    HeadBuffer,
    MalformedHead,
    body_of,
    header_fields,
    parse_head,
)


@dataclass(frozen=True, slots=True)
class ResponseHead:
    """The head of a response; `keep_alive` unless the host closes the connection behind it. Names are in lower case."""

    status: int
    headers: Headers
    framing: Head

    @property
    def is_final(self) -> bool:
        """Whether no other head follows."""
        return self.status >= 200

    @property
    def is_chunked(self) -> bool:
        """Whether the body comes in chunks, and may have trailers behind it."""
        return "transfer-encoding" in self.framing.headers

    def body(self, method: str) -> Body:
        """Return the body to be received for a request of that method. MalformedHead if its end is unclear."""
        return LengthBody(0) if method == "HEAD" else body_of(self.framing)


class HeadParser(HeadBuffer):
    """Collects bytes until a head is complete."""

    __slots__ = ()

    def feed(self, data: bytes) -> tuple[ResponseHead, bytes] | None:
        """Return the head and the bytes after it, None while it is incomplete. MalformedHead if it is not HTTP/1.1."""
        complete = self.take(data)
        if complete is None:
            return None
        raw, rest = complete
        return _read_head(raw), rest


def _read_head(raw: bytes) -> ResponseHead:
    head = parse_head(raw)
    if head.status >= 600:
        raise MalformedHead(f"status {head.status} was not asked for")
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in header_fields(raw)]
    return ResponseHead(head.status, headers, head)
