"""The servers of all tests of predictions; each test has models of its own there."""

from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
from integration_tests.predict.generate_stream.tutorial import Tutorial, running_tutorial
from integration_tests.server.grpc_port.grpc_clients import GRPC
from integration_tests.support.sidecars import Sidecar, running_sidecar


@pytest.fixture(scope="session")
def sidecar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sidecar]:
    """One worker, with a gRPC port; connectors may name credentials of its environment, and PROVIDER_TOKEN is there."""
    settings = {"opensearch_ml_stream.external_credentials_enabled": "true"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PROVIDER_TOKEN", "token-of-the-environment")
        with running_sidecar(tmp_path_factory.mktemp("predictions"), settings=settings, arguments=GRPC) as running:
            yield running


@pytest.fixture
async def client(sidecar: Sidecar) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=sidecar.url, timeout=60) as opened:
        yield opened


@pytest.fixture(scope="session")
def tutorial(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tutorial]:
    """Two workers that serve `/generate-stream`."""
    with running_tutorial(tmp_path_factory.mktemp("tutorial")) as running:
        yield running
