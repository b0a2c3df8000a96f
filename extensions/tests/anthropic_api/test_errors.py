"""Errors of the Messages API: their types, by whose fault they are."""

import json

import pytest

from opensearch_ml_stream.connectors.errors import (
    CONTEXT_LENGTH_EXCEEDED,
    BodyTooLarge,
    Conflict,
    Forbidden,
    HeadTooLarge,
    Internal,
    InvalidRequest,
    MLStreamError,
    NotFound,
    ProviderWords,
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


def test_what_else_a_provider_says_stands_beside_its_status() -> None:
    words = ProviderWords("ThrottlingException", "t", "p")
    said = json.loads(error_body(UpstreamError("x", provider_status=429, provider=words)))["error"]
    assert (said["provider_code"], said["provider_type"], said["provider_param"]) == words


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("Input is too long", "prompt is too long: Input is too long"),
        ("Prompt is too long: 9 tokens", "Prompt is too long: 9 tokens"),
    ],
)
def test_a_conversation_that_is_too_long_is_told_in_the_words_by_which_clients_shorten_theirs(
    reason: str, message: str
) -> None:
    error = UpstreamError(reason, provider_status=500, provider=ProviderWords(CONTEXT_LENGTH_EXCEEDED))
    said = json.loads(error_body(error))["error"]
    assert (error.status, said["type"], said["message"]) == (400, "invalid_request_error", message)


def test_a_thread_is_refused_so_that_the_sdk_sends_whole_conversations() -> None:
    with pytest.raises(ThreadUnsupported) as refused:
        read_conversation(
            {"max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}], "thread": {"type": "create"}}
        )
    details = {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}
    assert json.loads(error_body(refused.value))["error"]["details"] == details
