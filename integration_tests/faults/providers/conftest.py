"""One sidecar for all faults of providers; what they leave behind in it would show in the tests that follow."""

from collections.abc import Iterator

import pytest
from integration_tests.support.sidecars import Sidecar, running_sidecar

NO_BREAKER = {"opensearch_ml_stream.circuit_breaker_failures": "0"}  # every failure is to be seen for itself


@pytest.fixture(scope="package")
def sidecar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sidecar]:
    with running_sidecar(tmp_path_factory.mktemp("sidecar"), settings=NO_BREAKER) as running:
        yield running
