"""Sidecars that the tests of this folder share; each test looks at its own models, and changes no setting."""

from collections.abc import Iterator

import pytest
from integration_tests.server.grpc_port.grpc_clients import GRPC
from integration_tests.server.guarded_sidecars import Guarded, running_guarded
from integration_tests.server.shared_sidecars import LISTED_HOST, LISTED_ORIGIN, MAX_BODY, Replicas
from integration_tests.support.sidecars import Sidecar, running_sidecar


@pytest.fixture(scope="session")
def two_workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sidecar]:
    """With a gRPC port, and short waits."""
    settings = {
        "opensearch_ml_stream.heartbeat_seconds": "0.3",
        "opensearch_ml_stream.first_event_wait_seconds": "0.5",
    }
    folder = tmp_path_factory.mktemp("two-workers")
    with running_sidecar(folder, settings=settings, arguments=("--workers", "2", *GRPC)) as running:
        yield running


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """Two workers with access control."""
    with running_guarded(tmp_path_factory.mktemp("guarded"), "--workers", "2") as running:
        yield running


@pytest.fixture(scope="session")
def replicas(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicas]:
    folder = tmp_path_factory.mktemp("replicas")
    store = f"sqlite:///{folder}/store.db"
    with running_sidecar(folder, store) as one, running_sidecar(folder, store) as other:
        yield Replicas(store, one, other)


@pytest.fixture(scope="session")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sidecar]:
    """For requests of browsers and for large ones: with a listed origin, a listed host and a low limit of bodies."""
    settings = {
        "opensearch_ml_stream.cors_origins": f'["{LISTED_ORIGIN}"]',
        "opensearch_ml_stream.allowed_hosts": f'["{LISTED_HOST}"]',
        "opensearch_ml_stream.max_body_size": str(MAX_BODY),
        "opensearch_ml_stream.generate_stream_model": "none-such",
    }
    with running_sidecar(tmp_path_factory.mktemp("strict"), settings=settings) as running:
        yield running
