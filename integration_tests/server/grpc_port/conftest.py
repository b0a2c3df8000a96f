from collections.abc import Iterator

import pytest
from integration_tests.server.grpc_port.grpc_clients import GRPC
from integration_tests.support.sidecars import Sidecar, running_sidecar


@pytest.fixture(scope="module", params=["1", "2"], ids=["1 worker", "2 workers"])
def sidecar(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sidecar]:
    folder = tmp_path_factory.mktemp("grpc")
    with running_sidecar(folder, arguments=(*GRPC, "--workers", request.param)) as running:
        yield running
