import pytest
from integration_tests.support.sidecars import Sidecar


@pytest.fixture(scope="session")
def sidecar(two_workers: Sidecar) -> Sidecar:
    return two_workers
