"""Open the store that a URL names."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from urllib.parse import urlsplit

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.store import Store
from opensearch_ml_stream.plugin.store.cluster_url import split_urls
from opensearch_ml_stream.plugin.store.sqlite_store import SQLiteStore

_SQLITE = "sqlite:///"


@asynccontextmanager
async def open_store(url: str, index_prefix: str = "", read_seconds: float = 4.5) -> AsyncIterator[Store]:
    """Open the store of a URL; close it at exit.

    URLs are `sqlite:///PATH`, `sqlite:///:memory:` and `http(s)://[user:pass@]host[:port]`, also several of these with
    commas, for the hosts of one cluster. An absolute path has four slashes. An https URL may end in `?` and the options
    of `opensearch_tls`. `read_seconds` is how long a cluster may take to answer.
    InvalidRequest if the URL is none of these. Nothing is sent yet: `ping` checks that the store is up.
    """
    store = _store(url, index_prefix, read_seconds)
    try:
        yield store
    finally:
        await store.close()


def shown_store(url: str) -> str:
    """Return a store's URL without user, password and query, to be shown."""
    return url if url.startswith("sqlite:") else ",".join(_shown(one) for one in split_urls(url))


def check_store_url(url: str) -> None:
    """Raise InvalidRequest if no store can have that URL; nothing is sent."""
    _store(url, "", 4.5)


def _shown(url: str) -> str:
    scheme, separator, rest = url.partition("://")
    return f"{scheme}{separator}{rest.partition('?')[0].rpartition('@')[2]}"


def _store(url: str, index_prefix: str, read_seconds: float) -> Store:
    if url.startswith(_SQLITE) and len(url) > len(_SQLITE):
        return SQLiteStore(url.removeprefix(_SQLITE), index_prefix)
    if urlsplit(url).scheme in ("http", "https"):
        # By name: opensearch-py and aiohttp take 20 MiB, which the embedded store does not need.
        cluster = import_module("opensearch_ml_stream.plugin.store.opensearch_store")
        store: Store = cluster.OpenSearchStore(
            cluster.connect(url), cluster.connect(url, with_credentials=False), index_prefix, read_seconds
        )
        return store
    raise InvalidRequest("The store must be sqlite:///PATH, sqlite:///:memory: or http(s)://[user:password@]host:port")
