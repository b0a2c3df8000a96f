"""Which format a client gets: by `format`, `stream`, `Accept` and `_llm_interface`, in that order."""

from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.wire_format import NDJSON, SSE, WireFormat
from opensearch_ml_stream.rest_handlers.http.requests import wire_format

INTERFACE = {"_llm_interface": "openai/v1/chat/completions"}


@pytest.mark.parametrize(
    ("accept", "query_parameters", "model_parameters", "expected"),
    [
        (None, {}, {}, NDJSON),
        ("*/*", {}, {}, NDJSON),
        ("application/x-ndjson", {}, {}, NDJSON),
        ("text/event-stream", {}, {}, SSE),
        ("Text/Event-Stream; q=1", {}, {}, SSE),
        ("application/json, text/event-stream", {}, {}, SSE),
        ("application/x-ndjson, text/event-stream", {}, {}, SSE),
        ("application/json, application/x-ndjson", {}, {}, NDJSON),
        ("application/json", {}, {}, None),
        ("Application/JSON; charset=utf-8, application/json ", {}, {}, None),
        ("application/json, */*", {}, {}, NDJSON),
        (None, {}, INTERFACE, SSE),
        ("*/*", {}, INTERFACE, SSE),
        ("application/x-ndjson", {}, INTERFACE, NDJSON),
        ("application/json", {}, INTERFACE, None),
        (None, {"stream": "false"}, INTERFACE, None),
        ("text/event-stream", {"stream": "false"}, {}, None),
        ("application/json", {"stream": "true"}, {}, None),
        (None, {"stream": "true"}, {}, NDJSON),
        (None, {"stream": ""}, {}, NDJSON),
        (None, {"format": "sse"}, {}, SSE),
        (None, {"format": "json"}, INTERFACE, NDJSON),
        (None, {"format": "ndjson"}, INTERFACE, NDJSON),
        ("text/event-stream", {"format": "json"}, {}, NDJSON),
        ("application/json", {"format": "sse", "stream": "false"}, {}, SSE),
    ],
)
def test_the_client_chooses_the_format(
    accept: str | None,
    query_parameters: dict[str, str],
    model_parameters: dict[str, str],
    expected: WireFormat | None,
) -> None:
    scope: dict[str, Any] = {"headers": [] if accept is None else [(b"accept", accept.encode())]}
    assert wire_format(scope, query_parameters, model_parameters) is expected


@pytest.mark.parametrize("name", ["xml", "", "SSE"])
def test_an_unknown_format_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        wire_format({"headers": []}, {"format": name}, {})
    assert refused.value.reason == f"Unknown format [{name}]; use sse or json"
