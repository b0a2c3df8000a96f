"""Recorded streams of every provider behind `/v1/responses`: OpenAI's SDK reads what the provider said."""

import json
from typing import Any

import httpx
import pytest
from openai import OpenAI
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from opensearch_ml_stream.connectors.chunks import Ending
from opensearch_ml_stream.connectors.decoding.decoder import Decoder
from opensearch_ml_stream.connectors.decoding.fast_path import FastPathDecoder
from opensearch_ml_stream.connectors.known_providers import SHIPPED
from opensearch_ml_stream.extensions.openai_api.http.responses_door import ResponsesDoor
from tests.providers.recorded_streams import ALL_STREAMS, Recorded

_EVENTS: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
_STATUSES = {"length": "incomplete", "content_filter": "incomplete", "error": "failed"}


def written(decoder: Decoder | FastPathDecoder, data: bytes, size: int) -> bytes:
    """The body that a client gets of a provider's stream that comes in pieces of this size."""
    wire = ResponsesDoor(lambda: 7).read({"model": "m", "input": "Why?", "stream": True}).wire()
    body = b""
    for start in range(0, len(data), size):
        chunks = decoder.feed(data[start : start + size])
        body += wire.chunks(chunks) if chunks else b""
    chunks = decoder.close()
    assert isinstance(decoder.outcome, Ending)
    return body + wire.last(chunks, decoder.outcome, {})


def read_by_the_sdk(body: bytes) -> tuple[list[Any], Response]:
    """The events, and the response of the last one, as the SDK's stream helper has them."""
    headers = {"content-type": "text/event-stream"}
    transport = httpx.MockTransport(lambda request: httpx.Response(200, headers=headers, content=body))
    http: Any = httpx.Client(transport=transport)
    with (
        OpenAI(api_key="k", base_url="http://m/v1", http_client=http) as client,
        client.responses.stream(model="m", input="Why?") as stream,
    ):
        events: list[Any] = list(stream)
    return events, events[-1].response


@pytest.mark.parametrize("size", [1 << 20, 200, 7])
@pytest.mark.parametrize("recorded", ALL_STREAMS, ids=lambda recorded: recorded.name)
def test_the_sdk_reads_what_the_provider_said(recorded: Recorded, size: int) -> None:
    body = written(recorded.decoder(), recorded.data, size)
    payloads = [json.loads(line[6:]) for line in body.splitlines() if line.startswith(b"data: ")]
    for payload in payloads:
        _EVENTS.validate_python(payload)
    assert [payload["sequence_number"] for payload in payloads] == list(range(len(payloads)))
    events, response = read_by_the_sdk(body)
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert ("".join(deltas), response.output_text) == (recorded.text, recorded.text)
    summaries = [part.text for item in response.output if item.type == "reasoning" for part in item.summary]
    assert "".join(summaries) == recorded.reasoning
    calls = [item for item in response.output if item.type == "function_call"]
    assert [(call.name, call.arguments) for call in calls] == [
        (tool["name"] or "", tool["arguments"] or "{}") for tool in recorded.tools
    ]
    assert all(tool["id"] in (None, call.call_id) for call, tool in zip(calls, recorded.tools, strict=True))
    assert response.status == _STATUSES.get(recorded.finish, "completed")
    if recorded.usage is not None and recorded.usage.keys() >= {"input_tokens", "output_tokens"}:
        assert response.usage is not None
        assert response.usage.input_tokens == recorded.usage["input_tokens"]
        assert response.usage.output_tokens == recorded.usage["output_tokens"]


def test_a_stream_of_the_api_itself_passes_as_it_was_sent() -> None:
    (recorded,) = [stream for stream in ALL_STREAMS if stream.preset == "openai/v1/responses"]
    spec = SHIPPED.presets[recorded.preset]
    dialect = SHIPPED.dialects.get(spec.name)
    assert dialect is not None
    assert dialect.as_sent is not None
    as_sent = dialect.as_sent
    body = written(Decoder(spec.framing(), as_sent(spec.reader())), recorded.data, 50)
    assert [line for line in body.splitlines() if line.startswith((b"data: ", b"event: "))] == [
        line for line in recorded.data.splitlines() if line
    ]
