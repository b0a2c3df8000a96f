"""One sidecar for all requests of this folder: no other test looks at it."""

from collections.abc import Iterator

import pytest
from integration_tests.server.grpc_port.grpc_clients import GRPC
from integration_tests.support.sidecars import Sidecar, running_sidecar


@pytest.fixture(scope="session")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sidecar]:
    with running_sidecar(tmp_path_factory.mktemp("fuzz"), arguments=GRPC) as running:
        yield running
