"""A sidecar whose heartbeats come soon; what it responds before a provider has begun depends on the machine's speed."""

from collections.abc import Iterator

import pytest
from integration_tests.support.sidecars import Sidecar, running_sidecar


@pytest.fixture(scope="session")
def hasty_sidecar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sidecar]:
    settings = {
        "opensearch_ml_stream.heartbeat_seconds": "0.1",
        "opensearch_ml_stream.first_event_wait_seconds": "0.1",
    }
    with running_sidecar(tmp_path_factory.mktemp("hasty"), settings=settings) as running:
        yield running
