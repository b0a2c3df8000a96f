"""What a caller sees of each error."""

import pytest

from opensearch_ml_stream.connectors.errors import (
    CONTEXT_LENGTH_EXCEEDED,
    InvalidRequest,
    NotAcceptable,
    ProviderWords,
    StreamTruncated,
    UpstreamError,
)


def test_an_error_has_opensearchs_body() -> None:
    cause = {"type": "illegal_argument_exception", "reason": "no"}
    assert InvalidRequest("no").body() == {"error": {"root_cause": [cause], **cause}, "status": 400}
    assert InvalidRequest("no", type="parse_exception").body()["error"]["type"] == "parse_exception"


def test_a_content_type_that_is_not_json_has_opensearchs_bare_string() -> None:
    assert NotAcceptable("Content-Type header [text/plain] is not supported").body() == {
        "error": "Content-Type header [text/plain] is not supported",
        "status": 406,
    }


@pytest.mark.parametrize(
    ("provider_status", "status"),
    [(None, 424), (400, 400), (401, 424), (403, 424), (404, 424), (422, 400), (429, 429), (500, 424), (503, 424)],
)
def test_a_providers_fault_is_the_callers_only_where_the_caller_can_avoid_it(
    provider_status: int | None, status: int
) -> None:
    error = UpstreamError("x", provider_status=provider_status)
    assert (error.status, error.body()["status"]) == (status, status)
    assert error.body()["error"].get("provider_status") == provider_status


def test_what_a_provider_calls_its_error_is_beside_the_reason_and_redacted_with_it() -> None:
    words = ProviderWords("key-7", "key_error", None)
    error = UpstreamError("no key-7", retry_after="9", provider_status=401, provider=words, type="x")
    shown = error.redacted(lambda text: text.replace("key-7", "***"))
    assert (shown.reason, shown.type, shown.retry_after, shown.status) == ("no ***", "x", "9", 424)
    fields = {"provider_status": 401, "provider_code": "***", "provider_type": "key_error"}
    assert shown.provider_fields() == fields
    assert shown.body()["error"].items() >= fields.items()
    assert UpstreamError("x", retry_after="9").redacted(lambda text: text.replace("9", "*")).retry_after is None


@pytest.mark.parametrize("provider_status", [None, 400, 413, 500])
def test_a_conversation_that_is_too_long_is_the_callers_to_mend(provider_status: int | None) -> None:
    words = ProviderWords(CONTEXT_LENGTH_EXCEEDED)
    error = UpstreamError("x", provider_status=provider_status, provider=words)
    assert (error.status, error.provider_status) == (400, provider_status)


def test_a_stream_cut_off_has_a_type_of_its_own() -> None:
    error = StreamTruncated("x")
    assert (error.type, error.status) == ("stream_truncated_exception", 424)


def test_half_of_a_surrogate_pair_in_a_reason_is_replaced() -> None:
    assert InvalidRequest("a\ud83d").reason == "a?"
