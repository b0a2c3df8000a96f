"""Parses a provider's URL into what a connection and a request line need."""

from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote, urlsplit

from opensearch_ml_stream.connectors.errors import InvalidRequest

_PORTS = {"http": 80, "https": 443}
# What RFC 3986 allows in a path or query; "%" too, since the URL is escaped where it must be.
_UNQUOTED = "/?:@!$&'()*+,;=%-._~[]"


@dataclass(frozen=True, slots=True)
class Target:
    """The parts of a provider's URL.

    `host` is in ASCII (IDNA) without brackets, `authority` is host:port for messages, `host_header` the value of
    `Host` (without a default port), `path` includes the query.
    """

    scheme: str
    host: str
    port: int
    authority: str
    host_header: str
    path: str


@lru_cache(maxsize=1024)
def parse_target(url: str) -> Target:
    """Parse a URL. InvalidRequest, which never repeats the URL, if it cannot be called."""
    try:
        parts = urlsplit(url)
        port = parts.port
        host = (parts.hostname or "").encode("ascii" if parts.netloc.isascii() else "idna").decode("ascii")
    except ValueError:
        raise InvalidRequest("The connector's url has a host or port that cannot be read") from None
    if parts.scheme not in _PORTS:
        raise InvalidRequest(f"Protocol is not http or https: {parts.scheme}")
    if not host or any(character <= " " or character in "/\\@%" for character in host.partition("%")[0]):
        raise InvalidRequest("The connector's url has no host")
    if parts.username is not None:
        raise InvalidRequest("The connector's url holds a user name. Put credentials into a header of the connector")
    if port == 0:
        raise InvalidRequest("Port out of range: 0")
    name = f"[{host}]" if ":" in host else host
    default = _PORTS[parts.scheme]
    path = quote(parts.path or "/", safe=_UNQUOTED.replace("?", ""))
    if parts.query:
        path += "?" + quote(parts.query, safe=_UNQUOTED)
    return Target(
        scheme=parts.scheme,
        host=host,
        port=port or default,
        authority=f"{name}:{port or default}",
        host_header=name if port in (None, default) else f"{name}:{port}",
        path=path,
    )
