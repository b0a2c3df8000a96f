"""Parses a provider's URL into the parts that a connection and a request need. Unusual URLs are refused, not repaired.

If a check and a call parsed a URL differently, it could pass the check and be called elsewhere. So one parser serves
both, and it takes plain URLs only.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv6Address
from urllib.parse import quote, unquote

from opensearch_ml_stream.connectors.documents import MAX_URL_LENGTH
from opensearch_ml_stream.connectors.errors import InvalidRequest

_PORTS = {"http": 80, "https": 443}
# What RFC 3986 allows in a path or query; "%" too, since the URL is escaped where it must be.
_UNQUOTED = "/?:@!$&'()*+,;=%-._~[]"

_FORBIDDEN = re.compile(r"[\s\x00-\x20\x7f-\x9f\\]")
_URL = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(#)?")  # RFC 3986, appendix B
_AUTHORITY = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^\[\]:]*))(?::([0-9]{0,5}))?")
_NAME = re.compile(r"[a-z0-9._-]+")


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

    @property
    def origins(self) -> tuple[str, ...]:
        """The scheme, host and port; in two ways where the port is the scheme's own: without it and with it."""
        origin = f"{self.scheme}://{self.host_header}"
        return (origin, f"{self.scheme}://{self.authority}") if self.port == _PORTS[self.scheme] else (origin,)


@lru_cache(maxsize=256)  # up to 64 KiB each; an error is not kept, and with it no URL that is too long
def parse_target(url: str) -> Target:
    """Parse a URL. InvalidRequest, which never repeats the URL, if it cannot be called."""
    if len(url) > MAX_URL_LENGTH:
        raise InvalidRequest(f"The connector's url has more than {MAX_URL_LENGTH} characters")
    if _FORBIDDEN.search(url):
        raise InvalidRequest(
            "The connector's url holds white space, a control character or a backslash: percent-encode it"
        )
    match = _URL.match(url)
    assert match is not None  # it matches the empty string
    scheme, authority, path, query, fragment = match.groups()
    if fragment:
        raise InvalidRequest("The connector's url has a fragment (#), which no request can send: leave it away")
    scheme = (scheme or "").lower()
    if scheme not in _PORTS:
        raise InvalidRequest(f"Protocol is not http or https: {scheme}")
    name, port = _read_authority(authority or "")
    default = _PORTS[scheme]
    if ".." in unquote(path).replace("\\", "/").split("/"):
        raise InvalidRequest("The connector's url has a path that leads upwards (..)")
    target = quote(path or "/", safe=_UNQUOTED.replace("?", ""))
    if query:
        target += "?" + quote(query, safe=_UNQUOTED)
    return Target(
        scheme=scheme,
        host=name.strip("[]"),
        port=port or default,
        authority=f"{name}:{port or default}",
        host_header=name if port in (None, default) else f"{name}:{port}",
        path=target,
    )


def _read_authority(authority: str) -> tuple[str, int | None]:
    """Return the host in ASCII, an IPv6 address in brackets, and the port, None if there is none."""
    if "@" in authority:
        raise InvalidRequest("The connector's url holds a user name. Put credentials into a header of the connector")
    if "%" in authority:
        raise InvalidRequest("The connector's url has percent-encoding in its host")
    match = _AUTHORITY.fullmatch(authority)
    if match is None:
        raise _unreadable()
    address, name, digits = match.groups()
    port = int(digits) if digits else None
    if port == 0:
        raise InvalidRequest("Port out of range: 0")
    if port is not None and port > 65535:
        raise _unreadable()
    try:
        if address:
            IPv6Address(address)
            return f"[{address.lower()}]", port
        host = name.lower() if name.isascii() else name.encode("idna").decode("ascii").lower()
    except ValueError:
        raise _unreadable() from None
    if not host:
        raise InvalidRequest("The connector's url has no host")
    if not _NAME.fullmatch(host):
        raise _unreadable()
    return host, port


def _unreadable() -> InvalidRequest:
    return InvalidRequest("The connector's url has a host or port that cannot be read")
