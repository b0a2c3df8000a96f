"""The strings of a connector given as other scalars: what ML Commons 3.6.0 stores and sends for each."""

from typing import Any

import orjson
import pytest

from opensearch_ml_stream.connectors.documents import connector_document, read_connector
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.rendering.compiled_action import CompiledAction, ProviderRequest
from opensearch_ml_stream.connectors.rendering.template import ConnectorParameters
from opensearch_ml_stream.connectors.syntax import jsontext

SCALARS = [
    ("true", "true"),
    ("false", "false"),
    ("0", "0"),
    ("0.10", "0.10"),
    ("1.5", "1.5"),
    ("1e3", "1e3"),
    ("-1E+2", "-1E+2"),
    ("123456789012345678901234567890", "123456789012345678901234567890"),
    ('"True"', "True"),
    ('"null"', "null"),
    ('""', ""),
]
NO_SCALARS = ["null", '{"a": 1}', '["a"]', "[]"]
# Of a field outside `credential` and `headers`, null means that it is absent.
FIELDS = ["name", "version", "description", "credential.key", "headers.X", "method", "url", "pre_process_function"]

every_field = pytest.mark.parametrize("field", FIELDS)


def body(field: str, value: str) -> dict[str, Any]:
    """The body of a create request, as the server parses it, with the JSON text `value` for the field."""
    texts = {
        "name": '"c"', "version": "1", "description": '"d"', "credential.key": '"k"', "headers.X": '"x"',
        "method": '"POST"', "url": '"http://127.0.0.1/"', "pre_process_function": '"f"', field: value,
    }  # fmt: skip
    action = (
        f'{{"action_type": "predict", "method": {texts["method"]}, "url": {texts["url"]}, "request_body": "{{}}", '
        f'"pre_process_function": {texts["pre_process_function"]}, '
        f'"headers": {{"X": {texts["headers.X"]}, "Y": "Bearer ${{credential.key}}"}}}}'
    )
    text = (
        f'{{"name": {texts["name"]}, "version": {texts["version"]}, "description": {texts["description"]}, '
        f'"protocol": "http", "credential": {{"key": {texts["credential.key"]}}}, "actions": [{action}]}}'
    )
    return jsontext.load_object(text.encode(), written_numbers=True)


def value_of(document: dict[str, Any], field: str) -> Any:
    *outer, name = field.split(".")
    if outer == ["credential"]:
        return document["credential"][name]
    action = document["actions"][0]
    if outer == ["headers"]:
        return action["headers"][name]
    return document[name] if name in document else action[name]


def rendered(document: dict[str, Any]) -> ProviderRequest:
    connector = read_connector(document)
    compiled = CompiledAction.compile(connector.action(), ConnectorParameters.compile({}), connector.credential)
    return compiled.render({})


@every_field
@pytest.mark.parametrize(("written", "text"), SCALARS)
def test_a_scalar_is_stored_as_the_text_that_was_written(field: str, written: str, text: str) -> None:
    assert value_of(connector_document(body(field, written), inline=True), field) == text


@pytest.mark.parametrize(("written", "text"), SCALARS)
def test_a_header_and_a_credential_are_sent_as_they_were_written(written: str, text: str) -> None:
    assert rendered(connector_document(body("headers.X", written))).headers["X"] == text
    assert rendered(connector_document(body("credential.key", written))).headers["Y"] == f"Bearer {text}"


@pytest.mark.parametrize(
    ("field", "written"),
    [(field, written) for field in FIELDS for written in NO_SCALARS if written != "null" or "." in field],
)
def test_what_is_no_scalar_is_refused_by_name(field: str, written: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        connector_document(body(field, written))
    assert raised.value.status == 400
    assert raised.value.reason == f"{field} must be a string"


@pytest.mark.parametrize(
    ("credential", "headers", "sent"),
    [
        ({"key": True}, {"Y": "Bearer ${credential.key}", "X": 1.5}, {"Y": "Bearer true", "X": "1.5"}),
        ({"key": 7}, {"Y": "Bearer ${credential.key}", "X": False}, {"Y": "Bearer 7", "X": "false"}),
    ],
)
def test_scalars_in_a_document_that_something_else_stored_are_sent_as_ml_commons_does(
    credential: Any, headers: Any, sent: dict[str, str]
) -> None:
    request = rendered(stored(credential, headers))
    assert {name: request.headers[name] for name in sent} == sent


@pytest.mark.parametrize(
    ("credential", "headers", "field"),
    [
        ({"key": None}, {}, "credential.key"),
        ({"key": {"a": 1}}, {}, "credential.key"),
        ({}, {"X": None}, "headers.X"),
        ({}, {"X": ["a"]}, "headers.X"),
    ],
)
def test_a_stored_value_that_ml_commons_cannot_read_is_named(credential: Any, headers: Any, field: str) -> None:
    with pytest.raises(InvalidRequest, match=f"^{field} must be a string$"):
        read_connector(stored(credential, headers))


def test_a_parameter_keeps_the_text_of_its_number_and_of_no_other() -> None:
    parsed = jsontext.load_object(b'{"parameters": {"a": 0.10, "b": 1e3, "c": [0.10], "d": 7}}', written_numbers=True)
    stored = connector_document({**body("name", '"c"'), **parsed})
    assert stored["parameters"] == {"a": "0.10", "b": "1e3", "c": "[0.1]", "d": "7"}


def test_a_number_whose_text_is_kept_is_stored_as_any_other_number() -> None:
    config = jsontext.load_object(b'{"read_timeout": 5e1, "connection_timeout": 0.50}', written_numbers=True)
    document = connector_document({**body("name", '"c"'), "client_config": config})
    stored = orjson.loads(orjson.dumps(document, default=float))["client_config"]
    assert (stored["read_timeout"], stored["connection_timeout"]) == (50, 0.5)
    assert read_connector(document).client_config.read_timeout == 50


def test_a_body_of_very_many_numbers_is_parsed_without_their_texts() -> None:
    text = b'{"a": [' + b"0.10, " * 100_000 + b"1]}"
    values = jsontext.load_object(text, written_numbers=True)["a"]
    assert {type(value) for value in values} == {float, int}


def stored(credential: Any, headers: Any) -> dict[str, Any]:
    action = {
        "action_type": "PREDICT", "method": "POST", "url": "http://127.0.0.1/", "request_body": "{}",
        "headers": headers,
    }  # fmt: skip
    return {"name": "c", "version": "1", "protocol": "http", "credential": credential, "actions": [action]}
