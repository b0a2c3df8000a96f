"""Connectors on their way into the store."""

from typing import Any

import pytest

from opensearch_ml_stream.connectors.documents import connector_document
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.registry.connector_documents import check_connector
from opensearch_ml_stream.plugin.settings import Settings

BODY: dict[str, Any] = {
    "name": "c",
    "version": 1,
    "protocol": "http",
    "credential": {"k": "v"},
    "actions": [{"action_type": "predict", "method": "post", "url": "https://api.openai.com/v1"}],
}


@pytest.mark.parametrize("spec", ['{"preset":"nope"}', {"preset": "nope"}])
def test_a_stream_that_is_wrongly_described_is_refused_when_the_connector_is_made(spec: Any) -> None:
    with pytest.raises(InvalidRequest) as refused:
        check_connector(connector_document({**BODY, "parameters": {"_stream": spec}}), Settings())
    assert refused.value.reason.startswith("_stream.preset: there is no preset [nope]")


def test_a_stream_given_as_an_object_is_stored_as_json_text() -> None:
    document = connector_document({**BODY, "parameters": {"_stream": {"preset": "ollama/api/chat"}}})
    assert document["parameters"] == {"_stream": '{"preset":"ollama/api/chat"}'}
    check_connector(document, Settings())


@pytest.mark.parametrize("listed", ["region", '{"region": true}', {"region": True}, [1]])
def test_a_wrong_list_of_what_callers_may_set_is_refused_when_the_connector_is_made(listed: Any) -> None:
    with pytest.raises(InvalidRequest, match=r"^_caller_parameters: must be a JSON list"):
        check_connector(connector_document({**BODY, "parameters": {"_caller_parameters": listed}}), Settings())


def test_a_list_of_what_callers_may_set_may_be_an_array() -> None:
    document = connector_document({**BODY, "parameters": {"_caller_parameters": ["region"]}})
    assert document["parameters"] == {"_caller_parameters": '["region"]'}
    check_connector(document, Settings())


@pytest.mark.parametrize(
    ("url", "parameters", "config", "reason"),
    [
        ("http://api.openai.com/v1", {}, {}, r"cleartext endpoint \[http://api.openai.com\]"),
        ("${parameters.endpoint}/v1", {"endpoint": "HTTP://api.openai.com"}, {}, "cleartext endpoint"),
        ("https://api.openai.com/v1", {}, {"skip_ssl_verification": True}, "skip_ssl_verification cannot be enabled"),
    ],
)
def test_mutual_tls_that_would_protect_nothing_is_refused_when_the_connector_is_made(
    url: str, parameters: dict[str, str], config: dict[str, Any], reason: str
) -> None:
    actions = [
        {"action_type": "predict", "method": "post", "url": "https://api.openai.com/v1"},
        {"action_type": "batch_predict", "method": "post", "url": url},
    ]
    mutual = {"client_config": {"mutual_tls_enabled": True, **config}}
    settings = Settings(trusted_connector_endpoints_regex=("^https?://api.openai.com/.*$",))
    with pytest.raises(InvalidRequest, match=reason):
        check_connector(connector_document({**BODY, "parameters": parameters, "actions": actions, **mutual}), settings)
    check_connector(connector_document({**BODY, "parameters": parameters, "actions": actions}), settings)
