"""What a caller sees of each error."""

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest, NotAcceptable, StreamTruncated, UpstreamError


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


def test_a_stream_cut_off_has_a_type_of_its_own() -> None:
    error = StreamTruncated("x")
    assert (error.type, error.status) == ("stream_truncated_exception", 424)


def test_half_of_a_surrogate_pair_in_a_reason_is_replaced() -> None:
    assert InvalidRequest("a\ud83d").reason == "a?"
