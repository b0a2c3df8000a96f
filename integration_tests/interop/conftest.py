"""The sidecar of all tests here that need nothing else of it than its own settings."""

import pytest
from integration_tests.support.sidecars import Sidecar


@pytest.fixture(scope="session")
def sidecar(shared_sidecar: Sidecar) -> Sidecar:
    return shared_sidecar
