"""One worker with short times for all clients that take longer than it allows."""

from collections.abc import Iterator

import pytest
from integration_tests.faults.clients.hostile_clients import impatient_worker
from integration_tests.support.sidecars import Sidecar

LIMITS = {"head_seconds": 1, "body_read_seconds": 1, "keep_alive_seconds": 60, "unread_seconds": 0.3}
SETTINGS = {"first_event_wait_seconds": 60, "heartbeat_seconds": 60}


@pytest.fixture(scope="session")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sidecar]:
    with impatient_worker(tmp_path_factory.mktemp("impatient"), LIMITS, **SETTINGS) as running:
        yield running
