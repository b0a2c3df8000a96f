"""The errors of the clients: of which kind a response is, and what they say of it."""

import pickle
from typing import Any

import orjson
import pytest

from opensearch_ml_stream.client import (
    ConnectionFailed,
    ProviderFailed,
    RequestRefused,
    SidecarError,
    StreamTruncated,
)
from opensearch_ml_stream.client.errors import error_response
from opensearch_ml_stream.connectors import errors as sent_errors
from opensearch_ml_stream.connectors.errors import UpstreamError


@pytest.mark.parametrize(
    ("sent", "kind"),
    [
        (sent_errors.InvalidRequest("no"), RequestRefused),
        (sent_errors.Unauthorized(), RequestRefused),
        (sent_errors.NotFound("no"), RequestRefused),
        (sent_errors.NotAcceptable("no"), RequestRefused),
        (sent_errors.Throttled("no", type="budget_exceeded_exception"), RequestRefused),
        (sent_errors.Unavailable("no"), RequestRefused),
        (UpstreamError("no"), ProviderFailed),
        (UpstreamError("no", provider_status=400), ProviderFailed),
        (UpstreamError("no", provider_status=429), ProviderFailed),
        (UpstreamError("no", provider=sent_errors.ProviderWords("context_length_exceeded")), ProviderFailed),
        (sent_errors.StreamTruncated("no"), StreamTruncated),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_an_error_of_the_server_has_its_kind_reason_and_statuses(
    sent: sent_errors.MLStreamError, kind: type[SidecarError]
) -> None:
    error = error_response(sent.status, orjson.dumps(sent.body()), None)
    assert type(error) is kind
    assert (error.reason, error.status, error.provider_status) == (sent.reason, sent.status, sent.provider_status)
    assert error.provider_code == sent.provider.code
    assert error.type == ("" if sent.status == 406 else sent.type)
    assert str(error) == f"{sent.reason} (status {sent.status})"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"<html>", "<html>"),
        (b" Unauthorized\n", "Unauthorized"),
        (b"\xff", "\ufffd"),
        (b"[1]", "[1]"),
        (b'{"a": 1}', '{"a": 1}'),
        (b"x" * 999, "x" * 200),
        (b"", "The server gives no reason"),
        (b'{"error": "no"}', "no"),
        (b'{"error": {"type": "t"}}', "t"),
        (b'{"error": {"reason": "no"}, "status": "odd"}', "no"),
    ],
)
def test_any_other_error_body_is_told_as_far_as_it_can_be_read(body: bytes, reason: str) -> None:
    error = error_response(599, body, None)
    assert type(error) is RequestRefused
    assert (error.reason, error.status) == (reason, 599)


@pytest.mark.parametrize(
    ("header", "seconds"), [(None, None), ("30", 30.0), ("Thu, 01 Jan 2015 00:00:00 GMT", 0.0), ("soon", None)]
)
def test_the_time_to_wait_is_in_seconds(header: str | None, seconds: float | None) -> None:
    assert error_response(429, b"", header).retry_after == seconds


@pytest.mark.parametrize("kind", [RequestRefused, ProviderFailed, StreamTruncated, ConnectionFailed])
def test_every_error_is_of_one_family_and_goes_from_process_to_process(kind: type[SidecarError]) -> None:
    members: dict[str, Any] = {"status": 429, "type": "t", "provider_status": 529, "retry_after": 1.5}
    error = pickle.loads(pickle.dumps(kind("no", **members)))
    assert type(error) is kind and isinstance(error, SidecarError)
    assert vars(error) == {"reason": "no", **members}
