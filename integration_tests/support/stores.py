"""The stores that tests run against: SQLite, and real OpenSearch servers.

A test that needs a server has the marker `opensearch` (3.6.0), `opensearch("2.19.6")`, `secured` (3.4.0 with its
security plugin: secured_cluster.py) or `ml_commons`. The server is the one at OPENSEARCH_URL (OPENSEARCH_2_URL,
ML_COMMONS_URL), or one that `make opensearch` started. With CI=true the first test that needs another starts it by
scripts/opensearch.sh, and the end of the run stops it; ML Commons is on no registry and never started. Tests whose
server is not there are left out, and the end of the run says so.
Each test takes an index prefix of its own, so that servers can be shared; ML Commons knows no prefix, so that tests
beside it share its indices, and look only at what they made.
"""

import os
import secrets
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from integration_tests.support.secured.secured_cluster import SecuredCluster
from opensearchpy import AsyncOpenSearch

from opensearch_ml_stream.plugin.store import Store
from opensearch_ml_stream.plugin.store.open_store import open_store

OPENSEARCH_3 = "3.6.0"
OPENSEARCH_2 = "2.19.6"
ML_COMMONS = "ml-commons"
SECURED = "secured"
IN_CI = os.environ.get("CI") == "true"

_CHECKOUT = Path(__file__).parents[2]
_SCRIPT = _CHECKOUT / "scripts" / "opensearch.sh"
_FOLDER = Path(os.environ.get("OPENSEARCH_DIR") or _CHECKOUT / ".opensearch")
_URL_VARIABLES = {OPENSEARCH_3: "OPENSEARCH_URL", OPENSEARCH_2: "OPENSEARCH_2_URL", ML_COMMONS: "ML_COMMONS_URL"}
_PORTS = {OPENSEARCH_3: 9236, OPENSEARCH_2: 9219, SECURED: 9238}  # where `make opensearch` runs them
_START_SECONDS = 240  # of a test that may have to wait for its server


@dataclass(frozen=True, slots=True)
class Servers:
    """The URL of each server that tests may use, by version; `to_start` are those that do not run yet."""

    urls: dict[str, str]
    to_start: list[str] = field(default_factory=list)


SERVERS = pytest.StashKey[Servers]()


def find_servers() -> Servers:
    """Look which servers there are."""
    urls = {version: os.environ[name].rstrip("/") for version, name in _URL_VARIABLES.items() if name in os.environ}
    others = {version: _url(version, port) for version, port in _PORTS.items() if version not in urls}
    absent = [version for version, url in others.items() if not _runs(url, version)]
    urls |= {version: url for version, url in others.items() if IN_CI or version not in absent}
    return Servers(urls, absent if IN_CI else [])


def is_there(item: pytest.Item) -> bool:
    """Return whether the server that the test needs, if any, can be used."""
    version = version_of(item)
    if version is None:
        return True
    item.add_marker(pytest.mark.timeout(_START_SECONDS))
    return version in item.config.stash[SERVERS].urls


def version_of(item: pytest.Item) -> str | None:
    """The OpenSearch that a test needs, or None."""
    if item.get_closest_marker("ml_commons") is not None:
        return ML_COMMONS
    if item.get_closest_marker("secured") is not None:
        return SECURED
    marker = item.get_closest_marker("opensearch")
    if marker is None:
        return None
    return str(marker.args[0]) if marker.args else OPENSEARCH_3


def left_out(config: pytest.Config) -> list[str]:
    """What the tests need that were left out for want of a server."""
    return [f"OpenSearch {version}" for version in _PORTS if version not in config.stash[SERVERS].urls]


def stop_servers(config: pytest.Config) -> None:
    """Stop those that this run has started."""
    for version in config.stash[SERVERS].to_start:
        subprocess.run([_SCRIPT, "stop", str(_PORTS[version])], check=False, capture_output=True)


def _url(version: str, port: int) -> str:
    return f"{'https' if version == SECURED else 'http'}://127.0.0.1:{port}"


def _secured() -> SecuredCluster:
    port = _PORTS[SECURED]
    return SecuredCluster(_url(SECURED, port), _FOLDER / f"run-{port}" / "config" / "node.pem")


def _runs(url: str, version: str) -> bool:
    if version == SECURED:
        return _secured().responds()
    try:
        with urllib.request.urlopen(url, timeout=2) as response:
            return f'"{version}"' in response.read().decode()
    except (urllib.error.URLError, OSError):
        return False


def free_port() -> int:
    with closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def url_of(config: pytest.Config, version: str) -> str:
    """The URL of the run's server of that version, once it responds."""
    servers = config.stash[SERVERS]
    if version not in servers.urls:
        pytest.fail(f"a test that uses OpenSearch {version} needs the marker for it, see support/stores.py")
    if version in servers.to_start:
        _start(version)
    return servers.urls[version]


def _start(version: str) -> None:
    """Return once the server responds."""
    command = [str(_SCRIPT), "start", version, str(_PORTS[version])]
    started = subprocess.run(command, capture_output=True, text=True, check=False)
    if started.returncode != 0:
        pytest.fail(f"OpenSearch could not be started:\n{started.stderr}")


@pytest.fixture
def opensearch_url(pytestconfig: pytest.Config) -> str:
    """The URL of OpenSearch 3.6.0; for tests with the marker `opensearch`."""
    return url_of(pytestconfig, OPENSEARCH_3)


@pytest.fixture
def opensearch_2_url(pytestconfig: pytest.Config) -> str:
    """The URL of OpenSearch 2.19.6; for tests with the marker `opensearch("2.19.6")`."""
    return url_of(pytestconfig, OPENSEARCH_2)


@pytest.fixture(scope="session")
def ml_commons_url(pytestconfig: pytest.Config) -> str:
    """The URL of OpenSearch 3.6.0 with ML Commons, one for the run; for tests with the marker `ml_commons`."""
    return url_of(pytestconfig, ML_COMMONS)


@pytest.fixture(scope="session")
def secured_cluster(pytestconfig: pytest.Config) -> SecuredCluster:
    """OpenSearch 3.4.0 with its security plugin, one for the run; for tests with the marker `secured`."""
    url_of(pytestconfig, SECURED)
    return _secured()


@pytest.fixture(
    params=[
        "sqlite",
        pytest.param(OPENSEARCH_3, marks=pytest.mark.opensearch(OPENSEARCH_3), id="opensearch-3.6.0"),
        pytest.param(OPENSEARCH_2, marks=pytest.mark.opensearch(OPENSEARCH_2), id="opensearch-2.19.6"),
    ]
)
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of each kind of store in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'store.db'}"
    return url_of(request.config, request.param)


@pytest.fixture
async def index_prefix(request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """A prefix that no other test has; what is written under it on the test's servers is deleted at the end."""
    prefix = f"test-{secrets.token_hex(6)}"
    yield prefix
    version = version_of(request.node)
    if version is not None:
        async with AsyncOpenSearch(url_of(request.config, version)) as client:
            await client.indices.delete(index=f"{prefix}*")


@pytest.fixture
async def store(store_url: str, index_prefix: str) -> AsyncIterator[Store]:
    """An open store of each kind in turn, empty."""
    async with open_store(store_url, index_prefix) as opened:
        yield opened


@pytest.fixture
def embedded_store_url(tmp_path: Path) -> Iterator[str]:
    """The URL of a SQLite store in a file of the test's own."""
    yield f"sqlite:///{tmp_path / 'store.db'}"
