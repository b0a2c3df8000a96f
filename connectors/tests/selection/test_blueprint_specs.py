"""Every shipped blueprint: it says what it needs, renders, streams where it should, and holds no host that is fixed."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from opensearch_ml_stream.connectors.documents import Connector, connector_document, read_connector
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.known_providers import SHIPPED
from opensearch_ml_stream.connectors.rendering.compiled_action import CompiledAction, ProviderRequest
from opensearch_ml_stream.connectors.rendering.template import ConnectorParameters
from opensearch_ml_stream.connectors.stream_spec import Enable, StreamSpec
from opensearch_ml_stream.connectors.stream_spec_lookup import spec_for
from opensearch_ml_stream.connectors.syntax import jsontext
from tests.providers.recorded_streams import EXCHANGES, QUESTION

_FOLDER = Path(__file__).parents[3] / "blueprints"
_FILES = sorted(_FOLDER.glob("*.json"))

# What the shipped chat blueprints stream as, and where to, as it was recorded.
_STREAMED = {name: exchange for name, exchange in EXCHANGES.items() if exchange.streamed is not None}

every_blueprint = pytest.mark.parametrize("file", _FILES, ids=lambda file: file.stem)
every_stream = pytest.mark.parametrize("name", _STREAMED)


def _blueprint(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((_FOLDER / f"{name}.json").read_text("utf-8"))
    return document


def _connector(name: str, **parameters: Any) -> Connector:
    body = _blueprint(name)["connector"]
    return read_connector(connector_document({**body, "parameters": {**body["parameters"], **parameters}}))


def _rendered(connector: Connector, request: dict[str, Any], stream: StreamSpec | None) -> ProviderRequest:
    given = dict.fromkeys(connector.credential, "a key")
    action = CompiledAction.compile(connector.action(), ConnectorParameters.compile(connector.parameters), given)
    return action.render({name: jsontext.to_parameter(value) for name, value in request.items()}, stream)


@every_blueprint
def test_a_blueprint_says_what_it_is_and_what_to_give(file: Path) -> None:
    blueprint = _blueprint(file.stem)
    connector = blueprint["connector"]
    assert set(blueprint) <= {"name", "description", "credential", "parameters", "required", "connector", "model"}
    assert blueprint["name"] == file.stem
    assert "\n" not in blueprint["description"]
    assert set(connector["credential"]) <= set(blueprint["credential"])
    assert set(blueprint["credential"]) - set(connector["credential"]) <= {"session_token"}
    assert set(blueprint.get("required", ())) <= set(blueprint["parameters"]) <= set(connector["parameters"])
    assert all(help_text for part in ("credential", "parameters") for help_text in blueprint[part].values())
    assert connector_document(connector)["name"] == connector["name"]


@every_stream
def test_a_chat_blueprint_answers_the_plainest_request(name: str) -> None:
    connector = _connector(name, endpoint="http://127.0.0.1:8000")
    body = json.loads(_rendered(connector, {"inputs": QUESTION}, None).body)
    assert QUESTION in "".join(_strings(body))


@every_stream
def test_a_chat_blueprint_streams_where_its_provider_does(name: str) -> None:
    exchange = _STREAMED[name]
    assert exchange.streamed is not None
    connector = _connector(name, endpoint="http://127.0.0.1:8000")
    spec = spec_for(connector, connector.action(), {})
    own, known = (replace(one, enable=Enable()) for one in (spec, SHIPPED.presets[exchange.preset]))
    assert own == known
    request = _rendered(connector, {"inputs": QUESTION}, spec)
    assert request.url == f"http://127.0.0.1:8000{unquote(exchange.streamed.path)}"
    body = json.loads(request.body)
    assert body.items() >= dict(spec.enable.body).items()
    assert QUESTION in "".join(_strings(body))


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("messages", [{"role": "system", "content": "Be brief."}, {"role": "user", "content": 'a "b"'}]),
        ("contents", [{"role": "user", "parts": [{"text": 'a "b"'}]}]),
        ("input", [{"type": "text", "text": 'a "b"'}]),
        ("prompt", 'a "b"'),
        ("message", 'a "b"'),
    ],
)
def test_a_conversation_or_prompt_is_taken_when_it_is_given(parameter: str, value: Any) -> None:
    names = [name for name in _STREAMED if parameter in _connector(name).parameters]
    assert names
    for name in names:
        body = json.loads(_rendered(_connector(name), {parameter: value}, None).body)
        assert 'a "b"' in "".join(_strings(body)), name


@pytest.mark.parametrize("name", [file.stem for file in _FILES if file.stem not in _STREAMED])
def test_a_blueprint_that_is_no_chat_has_its_functions_and_says_that_it_cannot_stream(name: str) -> None:
    connector = _connector(name)
    action = connector.action()
    assert str(action.pre_process_function).startswith("connector.pre_process.")
    assert str(action.post_process_function).startswith("connector.post_process.")
    with pytest.raises(InvalidRequest, match="cannot stream"):
        spec_for(connector, action, {})


def test_an_exchange_with_each_blueprint_was_recorded() -> None:
    assert EXCHANGES.keys() == {file.stem for file in _FILES}, (
        "add the exchange to connectors/tests/providers/exchanges"
    )


@every_blueprint
def test_one_setting_moves_a_blueprint_to_another_server(file: Path) -> None:
    connector = _connector(file.stem, endpoint="http://127.0.0.1:8000")
    assert connector.action().url.startswith("${parameters.endpoint}")


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for element in inner for text in _strings(element)]
