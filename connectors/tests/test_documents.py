"""Connectors and models as documents: checked on the way in, in the stored form."""

from typing import Any

import pytest

from opensearch_ml_stream.connectors.documents import (
    action_documents,
    connector_document,
    read_connector,
    read_model,
)
from opensearch_ml_stream.connectors.errors import InvalidRequest

ACTION = {"action_type": "predict", "method": "post", "url": "https://h/p"}
BODY: dict[str, Any] = {
    "name": "c", "version": 1, "protocol": "http", "credential": {"k": "v"}, "actions": [ACTION],
    "parameters": {"n": 0.7, "b": True, "l": ["float"], "s": "text", "o": {"a": 1}},
}  # fmt: skip


def refusal(**changes: Any) -> str:
    with pytest.raises(InvalidRequest) as caught:
        connector_document({**BODY, **changes})
    assert caught.value.status == 400
    return caught.value.reason


def test_a_connector_is_stored_as_ml_commons_stores_it() -> None:
    assert connector_document({**BODY, "unknown": 1}) == {
        "name": "c",
        "version": "1",
        "protocol": "http",
        "parameters": {"n": "0.7", "b": "true", "l": '["float"]', "s": "text", "o": '{"a":1}'},
        "credential": {"k": "v"},
        "actions": [{"action_type": "PREDICT", "method": "post", "url": "https://h/p"}],
    }


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"name": None}, "Connector name is null"),
        ({"version": None}, "Connector version is null"),
        ({"protocol": None}, "Connector protocol is null"),
        ({"protocol": "grpc"},
         "Unsupported connector protocol. Please use one of [aws_sigv4, http, mcp_sse, mcp_streamable_http]"),
        ({"credential": None}, "Connector credential is null or empty list"),
        ({"credential": {}}, "Connector credential is null or empty list"),
        ({"credential": "k"}, "Connector credential is null or empty list"),
        ({"actions": None}, "No actions configured for this connector"),
        ({"protocol": "aws_sigv4"}, "Missing credential"),
        ({"protocol": "aws_sigv4", "credential": {"roleArn": "arn"}}, "Missing credential"),
        ({"protocol": "aws_sigv4", "credential": {"access_key": "a", "secret_key": "s"}}, "Missing service name"),
        ({"protocol": "aws_sigv4",
          "credential": {"access_key": "a", "secret_key": "s", "service_name": "bedrock"}}, "Missing region"),
        ({"actions": [{**ACTION, "action_type": None}]}, "action type can't be null"),
        ({"actions": [{**ACTION, "url": None}]}, "url can't be null"),
        ({"actions": [{**ACTION, "method": None}]}, "method can't be null"),
        ({"actions": [{**ACTION, "action_type": "guess"}]}, "Wrong Action Type of guess"),
        ({"actions": {}}, "actions must be an array of objects"),
        ({"actions": [ACTION, "predict"]}, "actions must be an array of objects"),
        ({"actions": [{**ACTION, "headers": ["a"]}]}, "headers must be an object"),
        ({"credential": ["secret"]}, "credential must be an object"),
        ({"parameters": []}, "parameters must be an object"),
    ],
)  # fmt: skip
def test_a_create_request_is_refused_with_ml_commons_words(changes: dict[str, Any], reason: str) -> None:
    assert refusal(**changes) == reason


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"read_timeouts": 1}, "read_timeouts"),
        ({"read_timeout": "soon"}, "read_timeout"),
        ({"read_timeout": 0}, "read_timeout"),
        ({"max_retry_times": -2}, "max_retry_times"),
        ({"skip_ssl_verification": "perhaps"}, "skip_ssl_verification"),
        ({"retry_backoff_policy": "often"}, "retry_backoff_policy"),
        ({"keystore_type": "JKS"}, "keystore_type"),
        ([], "client_config"),
    ],
)
def test_a_client_config_that_is_wrong_names_the_key(config: Any, field: str) -> None:
    assert field in refusal(client_config=config)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "Action name contains invalid characters"),
        ("a b", "Action name contains invalid characters"),
        ("caf\u00e9", "Action name contains invalid characters"),
        ("x" * 65, "Action name exceeds maximum length of 64 characters"),
        ("predict", "name can't be one of action type [PREDICT, EXECUTE, BATCH_PREDICT,"),
        ("BATCH_PREDICT", "name can't be one of action type"),
    ],
)
def test_an_action_with_a_name_that_could_be_mistaken_is_refused_as_ml_commons_does(name: str, reason: str) -> None:
    assert refusal(actions=[{**ACTION, "name": name}]).startswith(reason)


def test_what_an_action_says_is_stored_and_what_it_does_not_say_is_not() -> None:
    action = {
        **ACTION, "name": "say-it_2", "headers": {"n": 1}, "request_body": {"a": [1]}, "pre_process_function": "f",
        "post_process_function": "g", "supports_structured_output": "TRUE", "unknown": 1,
    }  # fmt: skip
    stored = {
        "action_type": "PREDICT", "name": "say-it_2", "method": "post", "url": "https://h/p", "headers": {"n": "1"},
        "request_body": '{"a":[1]}', "pre_process_function": "f", "post_process_function": "g",
        "supports_structured_output": True,
    }  # fmt: skip
    assert connector_document({**BODY, "actions": [action]})["actions"] == [stored]
    assert action_documents([ACTION])[0].keys() == {"action_type", "method", "url"}
    assert action_documents([{**ACTION, "supports_structured_output": "no"}])[0]["supports_structured_output"] is False
    assert action_documents(None) == []


def test_a_connector_for_aws_is_stored_with_its_region_and_service_from_either_place() -> None:
    keys = {"access_key": "a", "secret_key": "s"}
    places = {"region": "us-east-1", "service_name": "bedrock"}
    for parameters, credential in ((places, keys), ({}, {**keys, **places})):
        stored = connector_document(
            {**BODY, "protocol": "aws_sigv4", "parameters": parameters, "credential": credential}
        )
        assert stored.get("parameters", {}) == parameters
        assert stored["credential"] == credential


def test_an_inline_connector_needs_only_its_protocol() -> None:
    assert connector_document({"protocol": "http"}, inline=True) == {
        "protocol": "http", "credential": {}, "actions": [],
    }  # fmt: skip
    with pytest.raises(InvalidRequest, match="connector protocol is null"):
        connector_document({**BODY, "protocol": None}, inline=True)


@pytest.mark.parametrize("name", ["", "  "])
def test_a_blank_name_has_ml_commons_error(name: str) -> None:
    assert refusal(name=name) == ("Validation Failed: 1: Model connector name is required and cannot be null or blank;")


@pytest.mark.parametrize("protocol", ["mcp_sse", "mcp_streamable_http"])
def test_a_connector_that_only_an_agent_could_use_is_refused(protocol: str) -> None:
    assert refusal(protocol=protocol, url="https://h/") == (
        f"A connector with the protocol {protocol} is for agents, which ML Commons runs, not this"
    )


def test_headers_are_stored_where_they_are_given() -> None:
    assert action_documents([{**ACTION, "headers": None}])[0]["headers"] == {}
    assert "headers" not in action_documents([ACTION])[0]


def test_the_method_is_stored_as_it_is_written_and_used_in_upper_case() -> None:
    assert read_connector(connector_document(BODY)).action().method == "POST"


def test_what_was_stored_is_read_back() -> None:
    connector = read_connector(connector_document(BODY))
    assert connector.action().url == "https://h/p"
    assert connector.parameters["o"] == '{"a":1}'
    with pytest.raises(InvalidRequest, match="no BATCH_PREDICT action found in connector c"):
        connector.action("BATCH_PREDICT")


def test_a_model_is_enabled_unless_it_says_otherwise() -> None:
    assert read_model({"name": "m", "connector_id": "c"}).is_enabled
    assert not read_model({"name": "m", "is_enabled": False}).is_enabled
    inline = read_model({"name": "m", "connector": connector_document(BODY)}).connector
    assert inline is not None
    assert inline.name == "c"
