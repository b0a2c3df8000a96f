"""Browser rules: under which host names and from which web pages a request may come, and the headers of responses.

A browser sends requests that its user never asked for, to loopback and internal addresses too: any page can make it.
Other clients send neither `Origin` nor `Sec-Fetch-Site` and notice only the rule about `Host`, which keeps out a page
whose own name was rebound to this sidecar's address: to the browser such a page is of the same origin.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address

from starlette.responses import Response
from starlette.types import Scope

from opensearch_ml_stream.connectors.errors import Forbidden, MisdirectedRequest

Headers = tuple[tuple[bytes, bytes], ...]

_OF_ALL: Headers = (
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
)
FOR_OWN_PAGES: Headers = (*_OF_ALL, (b"cross-origin-resource-policy", b"same-origin"))
_FOR_LISTED_PAGES: Headers = (
    *_OF_ALL,
    (b"cross-origin-resource-policy", b"cross-origin"),
    (b"access-control-expose-headers", b"X-Opaque-Id, X-Request-Id, Retry-After"),
    (b"vary", b"Origin"),
)
SECURITY_HEADERS = "opensearch_ml_stream.security_headers"  # of the scope, where they are not those for own pages

_HEALTH = ("/_health/", "/v2/health/")
_LOOPBACK = ("localhost", "127.0.0.1")
_AUTHORITY = re.compile(r"(\[[^\]]*\]|[^:\[\]]*?)\.?(?::([0-9]*))?")
_DEFAULT_PORTS = {"http": "80", "https": "443"}
_SHOWN_LENGTH = 100  # of a name in an error
_REMEMBERED_LENGTH = 100  # of a name that is read once for many requests


@dataclass(frozen=True, slots=True)
class BrowserPolicy:
    """The `origins` of pages that may call, and the names in `Host` beside loopback names and IP addresses.

    Both as browsers write them: lower case, an origin without its default port, a name without a dot at its end.
    """

    origins: frozenset[str] = frozenset()
    hosts: frozenset[str] = frozenset()


def check_browser(scope: Scope, policy: BrowserPolicy, *, any_host: bool = False) -> None:
    """Raise MisdirectedRequest for a foreign host name, Forbidden for a web page that may not call.

    `any_host` is for where every caller logs in: a page that has its own name rebound knows no credentials.
    """
    host = origin = ""
    is_cross_site = False
    for name, value in scope["headers"]:
        if name == b"host":
            host = value.decode("latin-1").lower()
            if not (any_host or _is_known_host(host, policy) or scope["path"].startswith(_HEALTH)):
                raise _misdirected(host)
        elif name == b"origin":
            origin = value.decode("latin-1").lower()
        elif name == b"sec-fetch-site":
            is_cross_site = value.lower() == b"cross-site"
    if origin in policy.origins:
        scope[SECURITY_HEADERS] = (*_FOR_LISTED_PAGES, (b"access-control-allow-origin", origin.encode("latin-1")))
    elif is_cross_site or (origin and not _is_same_origin(origin, host)):
        raise _foreign_page(origin)


def check_embedding(scope: Scope) -> None:
    """Raise Forbidden for a GET that a page of a sibling host, or of another port, makes without saying its origin.

    `check_browser` is enough where a GET changes nothing. Where it costs money, no `<img>` of `localhost:3000` may make
    it, which to browsers is of the same site, and no browser that only fetches ahead what its user may want.
    """
    names = {name: value.lower() for name, value in scope["headers"]}
    if names.get(b"sec-fetch-site") == b"same-site" and b"origin" not in names:
        raise _foreign_page("")
    if names.get(b"sec-purpose", b"").startswith(b"prefetch"):
        raise Forbidden("This is not fetched ahead: each request is a prediction")


def preflight_response(scope: Scope) -> Response | None:
    """Return the response to a CORS preflight (Fetch standard, section 3.2) of a listed page, None for all else."""
    names = {name for name, _ in scope["headers"]}
    if scope["method"] != "OPTIONS" or SECURITY_HEADERS not in scope or b"access-control-request-method" not in names:
        return None
    headers = [value for name, value in scope["headers"] if name == b"access-control-request-headers"]
    return with_security_headers(
        scope,
        Response(
            status_code=204,
            headers={
                "Access-Control-Allow-Methods": "GET, HEAD, POST, PUT, DELETE",
                "Access-Control-Allow-Headers": b", ".join(headers).decode("latin-1"),
                "Access-Control-Max-Age": "600",
            },
        ),
    )


def security_headers(scope: Scope) -> Headers:
    """Return the security headers of responses to a request: the same for all requests but those of listed pages."""
    headers: Headers = scope.get(SECURITY_HEADERS, FOR_OWN_PAGES)
    return headers


def is_of_listed_page(scope: Scope) -> bool:
    """Whether `check_browser` has let a request in because of its `Origin`."""
    return SECURITY_HEADERS in scope


def with_security_headers(scope: Scope, response: Response) -> Response:
    """Return the response with the security headers."""
    response.raw_headers.extend(security_headers(scope))
    return response


def _is_known_host(host: str, policy: BrowserPolicy) -> bool:
    """Whether no foreign page can have that host: an address has no name to rebind, `.localhost` no DNS (RFC 6761)."""
    name, _ = _name_and_port(host)
    return name in _LOOPBACK or name in policy.hosts or name.endswith(".localhost") or _is_address(name)


def _is_same_origin(origin: str, host: str) -> bool:
    """Whether the page is of this server. Its scheme may differ from the request's: a proxy may terminate TLS."""
    scheme, _, authority = origin.partition("://")
    default = _DEFAULT_PORTS.get(scheme)
    if default is None:
        return False
    (name, port), (own_name, own_port) = _name_and_port(authority), _name_and_port(host)
    return bool(name) and (name, port or default) == (own_name, own_port or default)


def _name_and_port(authority: str) -> tuple[str, str]:
    """Return name (of IPv6 with its brackets) and port, each "" if there is none or if it is malformed."""
    if len(authority) <= _REMEMBERED_LENGTH:
        return _remembered_name_and_port(authority)
    match = _AUTHORITY.fullmatch(authority)
    return ("", "") if match is None else (match[1], match[2] or "")


@lru_cache(256)
def _remembered_name_and_port(authority: str) -> tuple[str, str]:
    match = _AUTHORITY.fullmatch(authority)
    return ("", "") if match is None else (match[1], match[2] or "")


def _is_address(name: str) -> bool:
    return _is_remembered_address(name) if len(name) <= _REMEMBERED_LENGTH else _reads_as_address(name)


@lru_cache(256)
def _is_remembered_address(name: str) -> bool:
    return _reads_as_address(name)


def _reads_as_address(name: str) -> bool:
    try:
        ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def _misdirected(host: str) -> MisdirectedRequest:
    name = _name_and_port(host)[0] or host
    return MisdirectedRequest(
        f"Requests for the host name [{name[:_SHOWN_LENGTH]}] are not served here. If clients or a proxy should use "
        "that name, add it to the setting opensearch_ml_stream.allowed_hosts"
    )


def _foreign_page(origin: str) -> Forbidden:
    page = f"of the origin [{origin[:_SHOWN_LENGTH]}]" if origin else "of another site"
    return Forbidden(
        f"A web page {page} may not call this sidecar. If it should, add its origin to the setting "
        "opensearch_ml_stream.cors_origins"
    )
