"""Errors as clients of OpenAI's API read them."""

import json

import pytest

from opensearch_ml_stream.connectors.errors import (
    BodyTooLarge,
    Forbidden,
    Internal,
    InvalidRequest,
    MLStreamError,
    NotFound,
    ProviderWords,
    Throttled,
    Unauthorized,
    Unavailable,
    UpstreamError,
)
from opensearch_ml_stream.extensions.openai_api.protocol.errors import error_body


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [
        (InvalidRequest("Wrong"), "invalid_request_error", None),
        (BodyTooLarge("Large"), "invalid_request_error", None),
        (Unauthorized(), "authentication_error", "invalid_api_key"),
        (Forbidden("No"), "permission_error", None),
        (NotFound("None"), "not_found_error", "model_not_found"),
        (Throttled("Slow"), "rate_limit_error", "rate_limit_exceeded"),
        (UpstreamError("Broke"), "server_error", "provider_error"),
        (Internal("Broke"), "server_error", None),
        (Unavailable("Down"), "server_error", None),
    ],
)
def test_types_are_openai_s_for_the_status(error: MLStreamError, kind: str, code: str | None) -> None:
    said = {"message": error.reason, "type": kind, "param": None, "code": code}
    assert json.loads(error_body(error)) == {"error": said}


@pytest.mark.parametrize(
    ("reason", "param"),
    [
        ("messages[2].content[0].image_url must be an object", "messages[2].content[0].image_url"),
        ("model is missing: it must be a string", "model"),
        ("[messages[1].content[0].X1] cannot be sent to this model's provider", "messages[1].content[0].X1"),
        ("The request body is not JSON", None),
    ],
)
def test_param_is_the_member_that_is_wrong(reason: str, param: str | None) -> None:
    assert json.loads(error_body(InvalidRequest(reason)))["error"]["param"] == param


def test_a_provider_s_own_code_type_and_param_are_said_in_their_places() -> None:
    words = ProviderWords("context_length_exceeded", "invalid_request_error", "messages")
    assert json.loads(error_body(UpstreamError("Long", provider=words)))["error"] == {
        "message": "Long", "type": words.type, "param": words.param, "code": words.code,
    }  # fmt: skip
    for words in (ProviderWords("insufficient_quota"), ProviderWords("rate_limit_exceeded", "tokens")):
        said = json.loads(error_body(UpstreamError("Slow", provider_status=429, provider=words)))["error"]
        assert (said["type"], said["code"]) == ("rate_limit_error", words.code)


def test_the_provider_s_status_is_said() -> None:
    assert json.loads(error_body(UpstreamError("Broke", provider_status=503)))["error"]["provider_status"] == 503
