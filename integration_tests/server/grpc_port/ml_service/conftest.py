"""A sidecar of two workers with a gRPC port."""

from collections.abc import Iterator

import pytest
from integration_tests.server.grpc_port.ml_service.grpc_ports import Port, running_port


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Port]:
    with running_port(tmp_path_factory.mktemp("sidecar"), arguments=("--workers", "2")) as running:
        yield running
