"""The gRPC port of a sidecar of two workers."""

from collections.abc import Iterator

import pytest
from integration_tests.server.grpc_port.ml_service.grpc_ports import Port, open_port
from integration_tests.support.sidecars import Sidecar


@pytest.fixture(scope="module")
def port(two_workers: Sidecar) -> Iterator[Port]:
    with open_port(two_workers) as opened:
        yield opened
