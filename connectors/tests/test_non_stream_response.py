"""A 2xx response that is not the stream that was asked for."""

import pytest

from opensearch_ml_stream.connectors.non_stream_response import non_stream_response


@pytest.mark.parametrize(
    ("body", "message", "provider_status"),
    [
        (b'{"error": {"message": "model is loading", "type": "server_error"}}', "model is loading", 500),
        (b'{"error": "no such model"}', "no such model", None),
        (b'{"object": "error", "message": "too long", "code": 400}', "too long", 400),
        (b'{"detail": "too long", "status": 400}', "too long", 400),
        (b'{"detail": "no such path"}', "no such path", None),
        (b'{"code": "InternalError", "message": "broke"}', "broke", 500),
        (b'[{"error": {"code": 429, "message": "quota", "status": "RESOURCE_EXHAUSTED"}}]\n', "quota", 429),
    ],
)
@pytest.mark.parametrize("kind", ["application/json", "text/event-stream", ""])
def test_an_error_under_a_good_status_keeps_the_providers_words(
    body: bytes, message: str, provider_status: int | None, kind: str
) -> None:
    error = non_stream_response(body, kind)
    assert error is not None
    assert error.reason == f"Error from remote service: {message}"
    assert error.provider_status == provider_status


def test_an_error_that_is_too_deep_is_one_all_the_same() -> None:
    error = non_stream_response(b'{"error":{"message":' + b"[" * 900 + b"]" * 900 + b"}}", "")
    assert error is not None
    assert error.reason == "Error from remote service: (nested too deeply to be shown)"


@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "Text/HTML"])
def test_a_whole_response_is_named_by_its_kind_and_not_shown(kind: str) -> None:
    error = non_stream_response(b'{"choices": [{"message": {"content": "private"}}], "error": null}', kind)
    assert error is not None
    assert f"responded with {kind.partition(';')[0].lower()} instead of the stream" in error.reason
    assert "private" not in error.reason


@pytest.mark.parametrize("body", [b"", b"data: {}\n\n", b'{"error"', b"[]", b"[1]", b"7"])
def test_what_may_have_been_the_stream_is_for_the_decoder(body: bytes) -> None:
    assert non_stream_response(body, "text/event-stream") is None
