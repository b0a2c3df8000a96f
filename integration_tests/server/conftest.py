"""Sidecars of two workers that the tests of this folder share: one for everyone, one whose callers log in."""

from collections.abc import Iterator

import pytest
from integration_tests.server.grpc_port.grpc_clients import GRPC
from integration_tests.server.guarded_sidecars import Guarded, running_guarded
from integration_tests.support.sidecars import Sidecar, running_sidecar


@pytest.fixture(scope="session")
def two_workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sidecar]:
    """With a gRPC port and short waits; for tests that look at their own models alone and change no setting."""
    settings = {
        "opensearch_ml_stream.heartbeat_seconds": "0.3",
        "opensearch_ml_stream.first_event_wait_seconds": "0.5",
    }
    folder = tmp_path_factory.mktemp("two-workers")
    with running_sidecar(folder, settings=settings, arguments=("--workers", "2", *GRPC)) as running:
        yield running


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """With access control and a gRPC port; for tests that look at their own models alone and change no setting."""
    with running_guarded(tmp_path_factory.mktemp("guarded"), "--workers", "2", *GRPC) as running:
        yield running
