"""Sidecars with two workers, whose callers the cluster's security plugin knows."""

from collections.abc import Iterator

import pytest
from integration_tests.server.grpc_port.grpc_clients import GRPC
from integration_tests.support.secured.secured_cluster import SecuredCluster
from integration_tests.support.sidecars import Sidecar, running_sidecar

WORKERS = ("--workers", "2")


@pytest.fixture(scope="module", params=["auto", "opensearch"])
def guarded(
    secured_cluster: SecuredCluster, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Sidecar]:
    """A sidecar with either setting, with its store in the cluster."""
    settings = {"opensearch_ml_stream.security": request.param}
    folder, arguments = tmp_path_factory.mktemp("guarded"), (*WORKERS, *GRPC)
    with running_sidecar(folder, secured_cluster.store_url, settings, arguments) as running:
        yield running
