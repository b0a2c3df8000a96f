"""One sidecar for all faults of providers; what they leave behind in it would show in the tests that follow."""

from collections.abc import Iterator

import pytest
from integration_tests.support.sidecars import Sidecar, running_sidecar


@pytest.fixture(scope="package")
def sidecar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sidecar]:
    with running_sidecar(tmp_path_factory.mktemp("sidecar")) as running:
        yield running
