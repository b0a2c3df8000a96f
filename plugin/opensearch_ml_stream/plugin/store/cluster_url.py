"""Reads a store's URL of an OpenSearch cluster, which may name several of its hosts."""

import re
from dataclasses import dataclass
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from opensearch_ml_stream.connectors.errors import InvalidRequest

_NEXT_URL = re.compile(r",(?=https?://)")  # a comma alone may stand in a password or between two fingerprints
_DEFAULT_PORTS = {"http": 9200, "https": 443}


@dataclass(frozen=True, slots=True)
class ClusterURL:
    """The hosts of a cluster with their ports, and what they share: scheme, path, login and options.

    `path` has no slash at its ends, `login` is user and password, None without a user. `options` are those of TLS, as
    they came.
    """

    scheme: str
    hosts: tuple[tuple[str, int], ...]
    path: str
    login: tuple[str, str] | None
    options: tuple[tuple[str, str], ...]


def split_urls(url: str) -> list[str]:
    """Return the URLs in a store's URL, one for each host."""
    return _NEXT_URL.split(url)


def read_cluster_url(url: str) -> ClusterURL:
    """Read `http(s)://[user:pass@]host[:port][/path][?TLS options]`, or several with a comma between each two.

    The port is 443 for https and 9200 for http if a URL has none. InvalidRequest, without the URL in it, if one cannot
    be read, or if two differ in more than host and port.
    """
    try:
        parts = [urlsplit(one) for one in split_urls(url)]
        hosts = tuple((one.hostname or "", one.port or _DEFAULT_PORTS[one.scheme]) for one in parts)
    except ValueError:
        raise InvalidRequest("The store's URL has a port that is no number from 0 to 65535") from None
    if not all(host for host, _ in hosts):
        raise InvalidRequest("The store's URL names no host: it must be http(s)://[user:password@]host:port")
    first = parts[0]
    if any(_shared(one) != _shared(first) for one in parts):
        raise InvalidRequest(
            "The store's URLs differ in more than host and port: scheme, user, password, path and options must be the "
            "same for all hosts of a cluster"
        )
    if len(set(hosts)) < len(hosts):
        raise InvalidRequest("The store's URL names a host twice")
    options = tuple(parse_qsl(first.query))
    if first.scheme == "http" and options:
        raise InvalidRequest("The store's URL has TLS options after ?, and its scheme is http; make it https")
    login = (unquote(first.username), unquote(first.password or "")) if first.username else None
    return ClusterURL(first.scheme, hosts, first.path.strip("/"), login, options)


def _shared(parts: SplitResult) -> tuple[str, str | None, str | None, str, str]:
    return parts.scheme, parts.username, parts.password, parts.path.strip("/"), parts.query
