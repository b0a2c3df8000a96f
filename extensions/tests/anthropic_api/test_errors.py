"""Errors of the Messages API: their types, by whose fault they are."""

import json

import pytest

from opensearch_ml_stream.connectors.errors import (
    BodyTooLarge,
    Conflict,
    Forbidden,
    HeadTooLarge,
    Internal,
    InvalidRequest,
    MLStreamError,
    NotFound,
    RequestTimeout,
    Throttled,
    Unauthorized,
    Unavailable,
    UpstreamError,
)
from opensearch_ml_stream.extensions.anthropic_api.protocol.errors import ThreadUnsupported, error_body
from opensearch_ml_stream.extensions.anthropic_api.protocol.messages_request import read_conversation


@pytest.mark.parametrize(
    ("error", "type"),
    [
        (InvalidRequest("x"), "invalid_request_error"),
        (Conflict("x"), "invalid_request_error"),
        (HeadTooLarge("x"), "invalid_request_error"),
        (Unauthorized(), "authentication_error"),
        (Forbidden("x"), "permission_error"),
        (NotFound("x"), "not_found_error"),
        (BodyTooLarge("x"), "request_too_large"),
        (Throttled("x"), "rate_limit_error"),
        (RequestTimeout("x"), "timeout_error"),
        (Internal("x"), "api_error"),
        (Unavailable("x"), "overloaded_error"),
        (UpstreamError("x", provider_status=400), "invalid_request_error"),
        (UpstreamError("x", provider_status=429), "rate_limit_error"),
        (UpstreamError("x", provider_status=529), "overloaded_error"),
        (UpstreamError("x", provider_status=503), "overloaded_error"),
        (UpstreamError("x", provider_status=504), "timeout_error"),
        (UpstreamError("x", type="timeout_exception"), "timeout_error"),
        (UpstreamError("x", provider_status=401), "api_error"),
        (UpstreamError("x", provider_status=404), "api_error"),
        (UpstreamError("x"), "api_error"),
    ],
    ids=lambda value: f"{type(value).__name__} {value.provider_status}" if isinstance(value, MLStreamError) else value,
)
def test_an_error_has_anthropics_type(error: MLStreamError, type: str) -> None:
    body = json.loads(error_body(error))
    assert (body["type"], body["error"]["type"], body["error"]["message"]) == ("error", type, error.reason)


def test_the_status_of_a_provider_is_said_where_there_is_one() -> None:
    assert json.loads(error_body(UpstreamError("x", provider_status=529)))["error"]["provider_status"] == 529
    assert "provider_status" not in json.loads(error_body(UpstreamError("x")))["error"]


def test_a_thread_is_refused_so_that_the_sdk_sends_whole_conversations() -> None:
    with pytest.raises(ThreadUnsupported) as refused:
        read_conversation(
            {"max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}], "thread": {"type": "create"}}
        )
    details = {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}
    assert json.loads(error_body(refused.value))["error"]["details"] == details
