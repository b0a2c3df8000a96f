"""One demo, and one sidecar whose callers log in, for all pages and commands that need nothing else of them."""

from collections.abc import Iterator

import pytest
from integration_tests.cli.demo_process import LAST_LINE, Demo, running_demo
from integration_tests.cli.guarded import Guarded, running_guarded
from integration_tests.support.stores import free_port


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    with running_demo(tmp_path_factory.mktemp("demo"), free_port()) as running:
        running.read_until(LAST_LINE)
        yield running


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with running_guarded(tmp_path_factory.mktemp("guarded")) as running:
        yield running
