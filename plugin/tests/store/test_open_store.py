"""Store URLs: which store they open, with which options, and what is refused."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from opensearchpy import AsyncOpenSearch

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.store import Index
from opensearch_ml_stream.plugin.store.open_store import check_store_url, open_store, shown_store
from opensearch_ml_stream.plugin.store.opensearch_store import OpenSearchStore, connect


@asynccontextmanager
async def client_of(url: str) -> AsyncIterator[AsyncOpenSearch]:
    client = connect(url)
    yield client
    await client.close()


async def test_a_file_and_memory_are_the_embedded_store(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    async with open_store(f"sqlite:///{path}", "p-") as store:
        written = await store.create(Index.MODEL, {}, "m")
        assert written.response["_index"] == "p-.plugins-ml-model"
    async with open_store(f"sqlite:///{path}", "p-") as store:
        assert await store.get(Index.MODEL, "m") is not None
    async with open_store("sqlite:///:memory:") as store:
        assert await store.get(Index.MODEL, "m") is None


@pytest.mark.parametrize("url", ["http://localhost", "https://ann:secret@cluster.example:9200/path?verify_certs=false"])
async def test_an_http_url_is_an_opensearch_that_is_not_asked_yet(url: str) -> None:
    async with open_store(url) as store:
        assert isinstance(store, OpenSearchStore)
    check_store_url(url)


@pytest.mark.parametrize(
    ("url", "host", "port", "path"),
    [
        ("http://localhost", "localhost", 9200, ""),
        ("https://cluster.example", "cluster.example", 443, ""),
        ("http://cluster.example:9201/search/", "cluster.example", 9201, "search"),
        ("http://[::1]:9202", "::1", 9202, ""),
    ],
)
async def test_the_client_goes_to_the_urls_host_port_and_path(url: str, host: str, port: int, path: str) -> None:
    async with client_of(url) as client:
        assert client.transport.hosts == [{"host": host, "port": port, "url_prefix": path}]
        assert client.transport.kwargs["use_ssl"] is url.startswith("https")
        assert client.transport.kwargs["timeout"] == 10
        assert client.transport.max_retries == 0


async def test_a_url_for_each_host_of_a_cluster_is_one_client() -> None:
    url = "https://ann:a,b@one:9200/path?fingerprint={0},{1},https://ann:a,b@two/path/?fingerprint={0},{1}"
    async with client_of(url.format("0" * 64, "1" * 64)) as client:
        assert [(host["host"], host["port"]) for host in client.transport.hosts] == [("one", 9200), ("two", 443)]
        assert client.transport.kwargs["http_auth"] == ("ann", "a,b")


@pytest.mark.parametrize(
    ("user", "login"),
    [("ann:pa%3Ass%40@", ("ann", "pa:ss@")), ("ann@", ("ann", "")), ("a%40b:x@", ("a@b", "x")), ("", None)],
)
async def test_user_and_password_may_be_percent_encoded(user: str, login: tuple[str, str] | None) -> None:
    async with client_of(f"https://{user}cluster.example") as client:
        assert client.transport.kwargs["http_auth"] == login


NO_STORE = "The store must be sqlite:///PATH, sqlite:///:memory: or http(s)://[user:password@]host:port"
BAD_PORT = "The store's URL has a port that is no number from 0 to 65535"
BAD_OPTION = (
    "The store's URL takes verify_certs, ca_certs, fingerprint, client_cert, client_key, client_key_password after ?; "
    "check "
)
AFTER = "The store's URL, after ?: "
DIFFERENT = (
    "The store's URLs differ in more than host and port: scheme, user, password, path and options must be the same for "
    "all hosts of a cluster"
)
NO_TLS = "The store's URL has TLS options after ?, and its scheme is http; make it https"


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("", NO_STORE),
        ("sqlite:///", NO_STORE),
        ("ftp://ann:secret@host", NO_STORE),
        ("http://", "The store's URL names no host: it must be http(s)://[user:password@]host:port"),
        ("http://ann:secret@host:99999", BAD_PORT),
        ("http://ann:secret@host:x", BAD_PORT),
        ("https://ann:secret@host?verify=no", f"{BAD_OPTION}verify"),
        ("https://ann:secret@host?verify_certs=maybe", f"{AFTER}verify_certs must be true or false"),
        ("https://host?ca_certs=/no/such", f"{AFTER}/no/such: the file cannot be read (No such file or directory)"),
        ("http://host?verify_certs=false", NO_TLS),
        ("http://ann:secret@one,http://ann:other@two", DIFFERENT),
        ("http://ann:secret@one,https://ann:secret@two", DIFFERENT),
        ("http://one/a,http://two/b", DIFFERENT),
        ("http://one,http://", "The store's URL names no host: it must be http(s)://[user:password@]host:port"),
        ("http://one,http://one:9200", "The store's URL names a host twice"),
    ],
)
async def test_a_url_that_names_no_store_is_refused_without_its_password(url: str, reason: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        check_store_url(url)
    assert raised.value.reason == reason
    with pytest.raises(InvalidRequest):
        async with open_store(url):
            pass


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("sqlite:////var/lib/store.db", "sqlite:////var/lib/store.db"),
        ("https://me:secret@host:9200?ca_certs=/ca.pem", "https://host:9200"),
        ("https://me:se@cret@host:9200", "https://host:9200"),
        ("http://host", "http://host"),
        ("http://me:x@one:9200,http://me:x@two", "http://one:9200,http://two"),
    ],
)
def test_a_store_is_shown_without_its_login(url: str, shown: str) -> None:
    assert shown_store(url) == shown
