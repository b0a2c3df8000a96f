"""The stores that tests run against: SQLite, and real OpenSearch servers that are started for the run.

A test that needs a server has the marker `opensearch` (3.6.0), `opensearch("2.19.6")`, `ml_commons` (3.6.0 with ML
Commons) or `secured` (3.4.0 with its security plugin: secured_cluster.py). The server is the one at OPENSEARCH_URL
(OPENSEARCH_2_URL, ML_COMMONS_URL), or one that `make opensearch` started, or is started for this run by
scripts/opensearch.sh. Where it cannot be had its tests are left out, and the end of the run says so; with CI=true that
is a failure, but for ML Commons where nothing names one: it is on no registry.
Each test takes an index prefix of its own, so that servers can be shared; ML Commons knows no prefix, so that tests
beside it share its indices, and look only at what they made.
"""

import os
import secrets
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
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

_CHECKOUT = Path(__file__).parents[2]
_SCRIPT = _CHECKOUT / "scripts" / "opensearch.sh"
_FOLDER = Path(os.environ.get("OPENSEARCH_DIR") or _CHECKOUT / ".opensearch")
_URL_VARIABLES = {OPENSEARCH_3: "OPENSEARCH_URL", OPENSEARCH_2: "OPENSEARCH_2_URL", ML_COMMONS: "ML_COMMONS_URL"}
_PORTS = {OPENSEARCH_3: 9236, OPENSEARCH_2: 9219, ML_COMMONS: 9237, SECURED: 9238}  # where `make opensearch` runs them
_TO_INCLUDE = {
    OPENSEARCH_3: "install Java and Maven, or set OPENSEARCH_URL",
    OPENSEARCH_2: "install Java and Maven, or set OPENSEARCH_2_URL",
    ML_COMMONS: "let ML_COMMONS_PLUGIN name ML Commons (see scripts/opensearch.sh), or set ML_COMMONS_URL",
    SECURED: "install Java, Maven and openssl",
}


@dataclass(slots=True)
class Server:
    """One OpenSearch of this run. `version` is what this run starts, if it does; `starting` is the script at it."""

    url: str
    port: int
    version: str | None = None
    starting: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Begins to start the server, in the background."""
        if self.version is not None and self.starting is None:
            command = [str(_SCRIPT), "start", self.version, str(self.port)]
            self.starting = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def wait(self) -> None:
        """Returns once the server responds."""
        self.start()
        if self.starting is not None and self.starting.wait() != 0:
            pytest.fail(f"OpenSearch could not be started:\n{self.starting.communicate()[1]}")

    def stop(self) -> None:
        if self.starting is not None:
            self.starting.communicate()
            subprocess.run([_SCRIPT, "stop", str(self.port)], check=False, capture_output=True)


@dataclass(slots=True)
class Servers:
    """The servers of this run, and how many tests were left out for want of one, by version and reason."""

    running: dict[str, Server] = field(default_factory=dict)
    left_out: dict[tuple[str, str], int] = field(default_factory=dict)


SERVERS = pytest.StashKey[Servers]()


def select_tests(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Starts the servers that the chosen tests need, and takes out the tests whose server cannot be had."""
    servers = config.stash[SERVERS] = Servers()
    reasons: dict[str, str | None] = {}
    kept, dropped = [], []
    for item in items:
        version = version_of(item)
        if version is None:
            kept.append(item)
            continue
        if version not in reasons:
            reasons[version] = None if config.option.collectonly else _prepare(servers, version)
        reason = reasons[version]
        if reason is None:
            item.add_marker(pytest.mark.timeout(240))  # the first one waits for its server
            kept.append(item)
        else:
            servers.left_out[version, reason] = servers.left_out.get((version, reason), 0) + 1
            dropped.append(item)
    if os.environ.get("CI") == "true" and (lines := _left_out_lines(servers, _may_not_be_left_out)):
        raise pytest.UsageError("; ".join(lines))
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = kept


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


def report_left_out(config: pytest.Config, terminal: pytest.TerminalReporter) -> None:
    for line in _left_out_lines(config.stash.get(SERVERS, Servers())):
        terminal.write_line(line, yellow=True)


def stop_servers(config: pytest.Config) -> None:
    for server in config.stash.get(SERVERS, Servers()).running.values():
        server.stop()


def _left_out_lines(servers: Servers, counts: Callable[[str], bool] = lambda _: True) -> list[str]:
    return [
        f"left out: {count} tests that need a real OpenSearch {version} ({reason}); to include them "
        f"{_TO_INCLUDE[version]}"
        for (version, reason), count in servers.left_out.items()
        if counts(version)
    ]


def _may_not_be_left_out(version: str) -> bool:
    return version != ML_COMMONS or "ML_COMMONS_PLUGIN" in os.environ


def _prepare(servers: Servers, version: str) -> str | None:
    """Finds the server or begins to start it. The reason if it cannot be had.

    A secured one is started by the first test that needs it: four at once would each take minutes.
    """
    variable = _URL_VARIABLES.get(version, "")
    url = os.environ.get(variable) or _url(version, _PORTS[version])
    if variable in os.environ or _runs(url, version):
        servers.running[version] = Server(url.rstrip("/"), _PORTS[version])
        return None
    fetched = subprocess.run([_SCRIPT, "fetch", version], capture_output=True, text=True, check=False)
    if fetched.returncode != 0:
        return fetched.stderr.strip().rpartition("\n")[2].removeprefix("opensearch.sh: ")
    port = free_port()
    server = servers.running[version] = Server(_url(version, port), port, version)
    if version != SECURED:
        server.start()
    return None


def _url(version: str, port: int) -> str:
    return f"{'https' if version == SECURED else 'http'}://127.0.0.1:{port}"


def _secured_at(port: int) -> SecuredCluster:
    return SecuredCluster(_url(SECURED, port), _FOLDER / f"run-{port}" / "config" / "node.pem")


def _runs(url: str, version: str) -> bool:
    if version == SECURED:
        return _secured_at(_PORTS[SECURED]).responds()
    path, mark = ("/_cat/plugins", "opensearch-ml ") if version == ML_COMMONS else ("", f'"{version}"')
    try:
        with urllib.request.urlopen(url + path, timeout=2) as response:
            return mark in response.read().decode()
    except (urllib.error.URLError, OSError):
        return False


def free_port() -> int:
    with closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def _server_of(config: pytest.Config, version: str) -> Server:
    servers = config.stash[SERVERS].running
    if version not in servers:
        pytest.fail(f"a test that uses OpenSearch {version} needs the marker for it, see support/stores.py")
    servers[version].wait()
    return servers[version]


def url_of(config: pytest.Config, version: str) -> str:
    """The URL of the run's server of that version, once it responds."""
    return _server_of(config, version).url


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
    return _secured_at(_server_of(pytestconfig, SECURED).port)


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
