"""Connectors and models as documents: checked on the way in, in the stored form."""

from typing import Any

import pytest

from opensearch_ml_stream.connectors.documents import (
    ClientConfig,
    connector_document,
    read_client_config,
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
        "actions": [{"action_type": "PREDICT", "method": "POST", "url": "https://h/p"}],
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


def test_a_client_config_is_read_with_its_defaults() -> None:
    read = read_client_config({"max_retry_times": "-1", "read_timeout": 5, "retry_backoff_policy": "CONSTANT"})
    assert read == ClientConfig(max_retry_times=-1, read_timeout=5)


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
