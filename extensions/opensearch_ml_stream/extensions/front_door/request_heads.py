"""The head that is sent to the cluster: the caller's, but for headers of the connection and of the peer's identity."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_to_bytes

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.extensions.front_door.hop_by_hop import Headers, end_to_end, head_lines, trailer_fields
from opensearch_ml_stream.plugin.security.caller_headers import TrustedProxy, peer_address

_XFF = b"x-forwarded-for"
_PROXY_PREFIX = b"x-proxy-"  # OpenSearch's proxy logins: x-proxy-user, x-proxy-roles, x-proxy-ext-*
# Of `fetch`: the response must be whole and of its own request, whatever the caller's was.
_NOT_FETCHED = frozenset({
    b"accept", b"accept-encoding", b"content-encoding", b"content-length", b"content-type", b"expect", b"host",
    b"if-match", b"if-modified-since", b"if-none-match", b"if-range", b"if-unmodified-since", b"range",
})  # fmt: skip

_MAX_DECODED = 4  # times that a path is decoded; one that has escapes left then is refused

Scope = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RequestHead:
    """A head without `Host`, which differs for each host of the cluster.

    `length` is the body's Content-Length, None for a chunked body; 0 for none at all.
    """

    line: bytes
    headers: bytes
    method: str
    length: int | None
    expects_continue: bool

    def for_host(self, authority: str, *, expect: bool) -> bytes:
        """Return the head's bytes for a host; with `expect` the body is sent when the host asks for it."""
        expectation = b"Expect: 100-continue\r\n" if expect else b""
        return b"%bHost: %b\r\n%b%b\r\n" % (self.line, authority.encode("ascii"), expectation, self.headers)


@dataclass(frozen=True, slots=True)
class RequestHeads:
    """Makes heads for a cluster whose URL has that path `prefix` (`/path`, or nothing).

    Headers by which a proxy names the user are forwarded only if the peer is the trusted proxy: the cluster may trust
    the sidecar's address, and callers could name any user.
    """

    prefix: bytes
    proxy: TrustedProxy | None
    identity_headers: frozenset[bytes]

    def head_of(self, scope: Scope) -> RequestHead:
        """Return the head for a request as it came. InvalidRequest for a path that could lead out of the prefix."""
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        if self.prefix:
            _check_stays_below(scope["raw_path"])
        target = self.prefix + scope["raw_path"]
        if query := scope["query_string"]:
            target += b"?" + query
        length: int | None = 0
        expects = accepts_trailers = False
        for name, value in headers:
            if name == b"content-length":
                length = int(value)
            elif name == b"transfer-encoding":
                length = None
            elif name == b"expect":
                expects = value.lower() == b"100-continue"
            elif name == b"te":
                accepts_trailers = b"trailers" in value.lower()
        sent = [pair for pair in self._trusted(scope, end_to_end(headers)) if pair[0] not in (b"host", b"expect")]
        if length is None:
            sent.append((b"transfer-encoding", b"chunked"))
        if accepts_trailers:
            sent += [(b"te", b"trailers"), (b"connection", b"te")]
        method = scope["method"]
        line = b"%b %b HTTP/1.1\r\n" % (method.encode("ascii"), target)
        return RequestHead(line, head_lines(sent), method, length, expects and length != 0)

    def fetch_head(self, scope: Scope, path: str, body: bytes) -> RequestHead:
        """Return the head of a GET of ours with the caller's credentials; `path` may have a query."""
        headers = [pair for pair in self._trusted(scope, end_to_end(scope["headers"])) if pair[0] not in _NOT_FETCHED]
        headers.append((b"accept", b"application/json"))
        if body:
            headers += [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        line = b"GET %b%b HTTP/1.1\r\n" % (self.prefix, path.encode("ascii"))
        return RequestHead(line, head_lines(headers), "GET", len(body), False)

    def trailers_of(self, trailers: Iterable[tuple[bytes, bytes]]) -> Headers:
        """Return those trailers of a request that go on: none names a user, whoever the peer is."""
        return self._without_identity(trailer_fields(trailers))

    def _trusted(self, scope: Scope, headers: Headers) -> Headers:
        address = None if self.proxy is None else peer_address(scope)
        if self.proxy is None or not self.proxy.is_at(address):
            return self._without_identity(headers)
        chain = [value for name, value in headers if name == _XFF] + [str(address).encode()]
        others = [pair for pair in headers if pair[0] != _XFF]
        return [*others, (_XFF, b", ".join(chain))]

    def _without_identity(self, headers: Headers) -> Headers:
        return [
            (name, value)
            for name, value in headers
            if name != _XFF and name not in self.identity_headers and not name.startswith(_PROXY_PREFIX)
        ]


def _check_stays_below(path: bytes) -> None:
    r"""Raise InvalidRequest if anything between here and the cluster could read `..` in the path.

    Each of them may decode it once more, take `\` for `/`, and drop what stands behind `;`.
    """
    decoded = unquote_to_bytes(path)
    for _ in range(_MAX_DECODED):
        if decoded == (again := unquote_to_bytes(decoded)):
            break
        decoded = again
    segments = [segment.partition(b";")[0].strip() for segment in decoded.replace(b"\\", b"/").split(b"/")]
    if not path.startswith(b"/") or b".." in segments or decoded != unquote_to_bytes(decoded):
        raise InvalidRequest(
            "The path leads out of the part of the server that is the cluster's: leave out [..], also as [%2e%2e]"
        )
