"""What all integration tests share."""

import pytest
from integration_tests.interop.peers import servers
from integration_tests.support import stores
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


@pytest.hookimpl(trylast=True)  # after -k and -m have chosen
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    servers.select_tests(config, items)
    stores.select_tests(config, items)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    stores.report_left_out(config, terminalreporter)
    servers.report_left_out(config, terminalreporter)


def pytest_unconfigure(config: pytest.Config) -> None:
    stores.stop_servers(config)
