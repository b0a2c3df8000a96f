"""Every shipped blueprint from its creation to the last chunk, at a server that checks every request closely.

Every one of them, as a document that users copy is right only as a whole: path, headers, signature, body, what is made
of the response. A call takes a hundredth of a second.
"""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from integration_tests.interop.provider_dialects import DIALECTS
from integration_tests.support.background_provider import background_provider
from integration_tests.support.connector_bodies import BLUEPRINTS, blueprint_connector
from integration_tests.support.fake_provider import FakeProvider
from integration_tests.support.predict_calls import outputs, predict, reason
from integration_tests.support.sidecars import Sidecar
from integration_tests.support.streamed_responses import assert_says, stream

from tests.providers.recorded_streams import SECRET

NAMES = sorted(path.stem for path in BLUEPRINTS.glob("*.json"))
CHATS = [name for name in NAMES if name in DIALECTS and DIALECTS[name].streamed]
FORMS = [(name, "inputs") for name in CHATS] + [(name, "own form") for name in CHATS if DIALECTS[name].own]
VECTORS = [name for name in NAMES if name in DIALECTS and not DIALECTS[name].streamed]


def create(sidecar: Sidecar, name: str, provider: FakeProvider) -> str:
    connector = blueprint_connector(name, provider.url)
    document = json.loads((BLUEPRINTS / f"{name}.json").read_text())
    connector["credential"] = dict.fromkeys(document["credential"], SECRET)  # also those that may be omitted
    return sidecar.create_model(connector, **document["model"])


def test_every_blueprint_has_a_server_that_checks_it() -> None:
    assert set(DIALECTS) == set(NAMES), "record an exchange of each in connectors/tests/providers/exchanges"


@pytest.mark.parametrize("name", NAMES)
def test_a_blueprint_predicts(sidecar: Sidecar, name: str) -> None:
    dialect = DIALECTS[name]
    with background_provider(dialect.script) as provider:
        response = predict(sidecar, create(sidecar, name, provider), dict(dialect.prediction))
    assert outputs(response) == dialect.predicted
    assert len(provider.requests) == len(dialect.wholes)


@pytest.mark.parametrize(("name", "form"), FORMS)
def test_a_blueprint_streams(sidecar: Sidecar, name: str, form: str) -> None:
    dialect = DIALECTS[name]
    prediction: Mapping[str, Any] = {"parameters": dialect.own} if form == "own form" else dialect.prediction
    with background_provider(dialect.script) as provider:
        response = stream(sidecar, create(sidecar, name, provider), prediction)
    assert dialect.streamed is not None
    assert_says(response, dialect.streamed.recorded)
    assert len(provider.requests) == 1


@pytest.mark.parametrize("name", VECTORS)
def test_a_blueprint_that_makes_vectors_says_why_it_does_not_stream(sidecar: Sidecar, name: str) -> None:
    with background_provider(DIALECTS[name].script) as provider:
        response = stream(sidecar, create(sidecar, name, provider), DIALECTS[name].prediction)
    assert "cannot stream" in reason(response)
    assert "vectors or scores" in reason(response) or "whose response does not stream" in reason(response)
    assert provider.requests == []


@pytest.mark.parametrize(
    ("name", "changed", "words"),
    [
        ("openai-chat", {"temperature": "0.5"}, "body is"),
        ("gemini-chat", {"model": "another"}, "path is"),
        ("anthropic-messages", {"anthropic_version": "2020-01-01"}, "anthropic-version is"),
        ("bedrock-converse", {"region": "eu-west-1"}, "signed for bedrock in eu-west-1"),
    ],
)
def test_the_servers_refuse_what_the_provider_would_refuse(
    sidecar: Sidecar, name: str, changed: dict[str, str], words: str
) -> None:
    """So the tests above can fail."""
    with background_provider(DIALECTS[name].script) as provider:
        model_id = sidecar.create_model(blueprint_connector(name, provider.url, **changed))
        response = stream(sidecar, model_id, DIALECTS[name].prediction)
    assert words in reason(response)
