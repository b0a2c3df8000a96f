"""What all integration tests share: the tests that this machine can run, and the servers that they use."""

import os
import shutil
import signal
from collections.abc import Iterator

import pytest
from integration_tests.support import stores
from integration_tests.support.sidecars import Sidecar, running_sidecar
from integration_tests.support.stores import (
    embedded_store_url,
    index_prefix,
    ml_commons_url,
    opensearch_2_url,
    opensearch_url,
    secured_cluster,
    store,
    store_url,
)

__all__ = [
    "embedded_store_url",
    "index_prefix",
    "ml_commons_url",
    "opensearch_2_url",
    "opensearch_url",
    "secured_cluster",
    "store",
    "store_url",
]


@pytest.fixture(scope="session")
def shared_sidecar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sidecar]:
    """A sidecar over an embedded store, for tests that need nothing else of it and look at their own models alone."""
    with running_sidecar(tmp_path_factory.mktemp("shared")) as running:
        yield running


def pytest_configure(config: pytest.Config) -> None:
    # What tests start, and processes of pytest-xdist, would else compile all that they import each time.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # A shell that runs the tests in the background has them ignore Ctrl-C, and what they start would, too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config.stash[stores.SERVERS] = stores.find_servers()


@pytest.hookimpl(trylast=True)  # after -k and -m have chosen
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    dropped = [item for item in items if not (_has_programs(item) and stores.is_there(item))]
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = [item for item in items if item not in set(dropped)]


def _has_programs(item: pytest.Item) -> bool:
    """In CI each must be there, and a test fails without it; Chromium, the largest, is used there alone."""
    names = [name for marker in item.iter_markers("programs") for name in marker.args]
    return stores.IN_CI or ("chromium" not in names and all(map(shutil.which, names)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if not stores.IN_CI:
        needed = ", ".join([*stores.left_out(config), "Chromium"])
        terminalreporter.write_line(f"left out: tests that need {needed}; CI=true runs them all", yellow=True)


def pytest_unconfigure(config: pytest.Config) -> None:
    if "PYTEST_XDIST_WORKER" not in os.environ:
        stores.stop_servers(config)
