"""One sidecar and one provider beside the run's ML Commons."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from integration_tests.interop.ml_commons.sides import Side
from integration_tests.support.background_provider import background_provider
from integration_tests.support.connector_bodies import openai
from integration_tests.support.fake_provider import FakeProvider, Request, Script, json_response, openai_stream
from integration_tests.support.sidecars import running_sidecar


def _respond(request: Request) -> Script:
    """Streams if it is asked to; else repeats what was asked."""
    body = request.json()
    if body.get("stream"):
        return openai_stream(["For", "ty", "-two"])
    said = {"choices": [{"message": {"role": "assistant", "content": "Forty-two"}}]}
    return json_response({**said, "asked": body})


@pytest.fixture(scope="session")
def beside_provider() -> Iterator[FakeProvider]:
    with background_provider(_respond) as running:
        yield running


@pytest.fixture(scope="session")
def sidecar(ml_commons_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Side]:
    """The sidecar; at a cluster that nobody has used it is first, and makes the master key."""
    with running_sidecar(tmp_path_factory.mktemp("beside"), ml_commons_url) as running:
        side = Side("sidecar", running.client)
        side.ask("POST", "/connectors/_create", openai("http://127.0.0.1:1"))
        yield side


@pytest.fixture(scope="session")
def ml_commons(ml_commons_url: str, sidecar: Side) -> Iterator[Side]:
    """The real one, used only after the sidecar."""
    with httpx.Client(base_url=ml_commons_url, timeout=30) as client:
        yield Side("ML Commons", client)


@pytest.fixture
def sides(sidecar: Side, ml_commons: Side) -> dict[str, Side]:
    return {"sidecar": sidecar, "ml_commons": ml_commons}


@pytest.fixture
def connector(beside_provider: FakeProvider) -> dict[str, Any]:
    """A body that both take, with a credential of its own."""
    return openai(beside_provider.url)
