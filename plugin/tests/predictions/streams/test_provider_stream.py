"""ProviderStream over scripted responses: chunks, then one outcome, whether read or pumped."""

from collections.abc import Awaitable, Callable

import pytest

from opensearch_ml_stream.connectors.chunks import Chunk, Chunks, Ending, to_chunk_list
from opensearch_ml_stream.connectors.decoding.decoder import FastPathDecoder
from opensearch_ml_stream.connectors.errors import StreamTruncated, UnreadableEvent, UpstreamError
from opensearch_ml_stream.connectors.providers.bedrock_converse import BEDROCK_CONVERSE
from opensearch_ml_stream.connectors.providers.ollama import OLLAMA
from opensearch_ml_stream.connectors.providers.open_inference import OPEN_INFERENCE
from opensearch_ml_stream.connectors.providers.openai_chat import OPENAI_CHAT, OPENAI_CHAT_PLAIN
from opensearch_ml_stream.connectors.stream_spec import StreamSpec
from opensearch_ml_stream.connectors.unstreamed_response import MAX_NON_STREAM_BYTES
from opensearch_ml_stream.plugin.credentials.redaction import Redactor
from opensearch_ml_stream.plugin.predictions import provider_stream
from opensearch_ml_stream.plugin.predictions.provider_stream import ProviderStream
from opensearch_ml_stream.plugin.upstream import ReadTimedOut, ResponseFailed
from tests.predictions.prediction_setup import SECRET
from tests.predictions.scripted_provider import JSON, OPENAI_END, SSE, Response, openai_event, openai_stream

BROKEN = b"data: {nonsense\n\n"


def stream_of(response: Response, spec: StreamSpec = OPENAI_CHAT) -> ProviderStream:
    return ProviderStream(response, spec.decoder(), Redactor({"key": SECRET}))


async def read_to_the_end(stream: ProviderStream) -> list[Chunk]:
    chunks: list[Chunk] = []
    while stream.outcome is None:
        chunks += to_chunk_list(await stream.read())
    return chunks


async def pump_to_the_end(stream: ProviderStream) -> list[Chunk]:
    """As the routes do: one read, then pumping."""
    chunks: list[Chunk] = to_chunk_list(await stream.read())

    def encode(more: Chunks) -> bytes:
        chunks.extend(to_chunk_list(more))
        return b""

    while stream.outcome is None:
        chunks += to_chunk_list(await stream.pump(encode, lambda data: True))
    return chunks


Take = Callable[[ProviderStream], Awaitable[list[Chunk]]]


async def outcome_of(response: Response, spec: StreamSpec = OPENAI_CHAT) -> Ending | UpstreamError:
    """The outcome, which must be the same however the stream is consumed."""
    read, pumped = stream_of(response, spec), stream_of(Response(response.parts, 200, response.headers), spec)
    assert await read_to_the_end(read) == await pump_to_the_end(pumped)
    assert read.outcome is not None and pumped.outcome is not None
    assert str(read.outcome) == str(pumped.outcome)
    return read.outcome


async def test_each_read_gives_what_came_and_the_last_one_the_outcome() -> None:
    stream = stream_of(openai_stream("For", "ty", "-two"))
    assert (stream.chunks, stream.first_chunk, stream.outcome) == (0, None, None)
    for text in ("For", "ty", "-two"):
        assert to_chunk_list(await stream.read()) == [Chunk(text)]
        assert stream.outcome is None
    assert to_chunk_list(await stream.read()) == []
    assert isinstance(stream.outcome, Ending) and stream.outcome.finish_reason == "stop"
    assert stream.chunks == 3


async def test_a_read_waits_until_an_event_is_whole() -> None:
    event = openai_event("whole")
    stream = stream_of(Response([event[:5], event[5:-1], event[-1:], OPENAI_END], headers=SSE))
    assert to_chunk_list(await stream.read()) == [Chunk("whole")]


async def test_a_stream_that_is_pumped_has_the_same_chunks() -> None:
    stream = stream_of(openai_stream("For", "ty", "-two"))
    assert await pump_to_the_end(stream) == [Chunk("For"), Chunk("ty"), Chunk("-two")]
    assert (stream.outcome, stream.chunks) == (Ending(native_finish_reason="stop"), 3)


async def test_the_time_of_the_first_chunk_is_noted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([12.5])
    monkeypatch.setattr(provider_stream, "monotonic", lambda: next(times))
    stream = stream_of(Response([b": a comment\n\n", openai_event("a"), openai_event("b"), OPENAI_END], headers=SSE))
    await stream.read()
    assert stream.first_chunk == 12.5
    await read_to_the_end(stream)
    assert stream.first_chunk == 12.5


async def test_a_pump_writes_every_chunk_but_those_that_come_with_the_outcome() -> None:
    last = openai_event("last") + OPENAI_END
    stream = stream_of(Response([openai_event("a"), b": nothing\n\n", openai_event("b"), last], headers=SSE))
    written: list[bytes] = []
    assert to_chunk_list(await stream.read()) == [Chunk("a")]
    assert to_chunk_list(await stream.pump(encoded, keep(written))) == [Chunk("last")]
    assert written == [b"b"]
    assert isinstance(stream.outcome, Ending)
    assert stream.chunks == 3


async def test_a_pump_stops_when_the_writer_is_full_and_goes_on_where_it_stopped() -> None:
    stream = stream_of(openai_stream("a", "b", "c"))
    written: list[bytes] = []
    assert to_chunk_list(await stream.pump(encoded, keep(written, room=2))) == []
    assert (written, stream.outcome) == ([b"a", b"b"], None)
    assert to_chunk_list(await stream.pump(encoded, keep(written))) == []
    assert written == [b"a", b"b", b"c"]
    assert isinstance(stream.outcome, Ending)


def encoded(chunks: Chunks) -> bytes:
    return "".join(chunk.text for chunk in to_chunk_list(chunks)).encode()


def keep(written: list[bytes], room: int = 1_000) -> Callable[[bytes], bool]:
    def write(data: bytes) -> bool:
        written.append(data)
        return len(written) < room

    return write


async def test_a_stream_that_ends_without_its_terminator_is_truncated() -> None:
    assert isinstance(await outcome_of(Response([openai_event("a")], headers=SSE)), StreamTruncated)


async def test_a_connection_that_breaks_truncates_the_stream_and_says_why() -> None:
    failure = UpstreamError("Error communicating with remote model: reset")
    outcome = await outcome_of(Response([openai_event("a"), failure], headers=SSE))
    assert isinstance(outcome, StreamTruncated)
    assert outcome.reason == failure.reason
    assert await outcome_of(Response([failure], headers=SSE)) is not failure


async def test_a_read_timeout_is_told_as_it_is() -> None:
    silence = ReadTimedOut("Read timeout: api.openai.com:443 sent nothing for 30 s")
    assert await outcome_of(Response([openai_event("a"), silence], headers=SSE)) is silence


async def test_what_a_runtime_raises_is_told_as_it_is() -> None:
    raised = ResponseFailed("The runtime of model m raised ValueError: too long", provider_status=400)
    outcome = await outcome_of(Response([openai_event("a"), raised], headers=SSE))
    assert outcome is raised


async def test_an_error_event_ends_the_stream_without_the_credential() -> None:
    event = b'data: {"error": {"message": "key %b is out of credit"}}\n\n' % SECRET.encode()
    outcome = await outcome_of(Response([openai_event("a"), event], headers=SSE))
    assert isinstance(outcome, UpstreamError) and not isinstance(outcome, StreamTruncated)
    assert "key *** is out of credit" in outcome.reason


async def test_an_event_that_cannot_be_read_ends_the_stream_after_the_text_before_it() -> None:
    stream = stream_of(Response([openai_event("a"), BROKEN, openai_event("b"), OPENAI_END], headers=SSE))
    assert await read_to_the_end(stream) == [Chunk("a")]
    assert isinstance(stream.outcome, UnreadableEvent)


async def test_one_json_object_instead_of_a_stream_is_named_as_such() -> None:
    body = b'{"results": [{"message": {"content": "all at once"}}]}'
    outcome = await outcome_of(Response([body[:20], body[20:]], headers={"content-type": "application/json; x=y"}))
    assert isinstance(outcome, UpstreamError)
    assert "application/json instead of the stream" in outcome.reason


WHOLE = b'{"model": "m", "message": {"content": "all at once"}, "done": true, "done_reason": "length"}'


@pytest.mark.parametrize("spec", [OPENAI_CHAT, OLLAMA, BEDROCK_CONVERSE], ids=lambda spec: spec.name)
@pytest.mark.parametrize("take", [read_to_the_end, pump_to_the_end])
async def test_a_whole_response_is_a_stream_of_one_chunk(spec: StreamSpec, take: Take) -> None:
    stream = stream_of(Response([WHOLE[:20], WHOLE[20:]], headers=JSON), spec)
    assert await take(stream) == [Chunk("all at once")]
    assert stream.outcome == Ending("length", "length", model="m")
    assert stream.chunks == 1
    assert stream.first_chunk is not None


async def test_a_whole_response_that_breaks_off_is_an_error() -> None:
    broken = ReadTimedOut("the provider was silent")
    outcome = await outcome_of(Response([WHOLE[:20], broken], headers=JSON), BEDROCK_CONVERSE)
    assert isinstance(outcome, UpstreamError)


async def test_a_whole_response_is_read_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider_stream, "MAX_NON_STREAM_BYTES", 5)
    monkeypatch.setattr(provider_stream, "MAX_WHOLE_RESPONSE_BYTES", 10)
    outcome = await outcome_of(Response([WHOLE[:20], WHOLE[20:], b" "], headers=JSON))
    assert isinstance(outcome, UpstreamError)
    assert "application/json instead of the stream" in outcome.reason


async def test_an_error_with_a_good_status_is_the_providers_own_error_without_the_credential() -> None:
    body = b'{"error": {"message": "bad key %b", "code": 401}}' % SECRET.encode()
    outcome = await outcome_of(Response([body], headers=JSON))
    assert isinstance(outcome, UpstreamError)
    assert "bad key ***" in outcome.reason


@pytest.mark.parametrize("kind", ["application/json", "application/x-amz-json-1.0", ""])
async def test_an_error_in_json_where_binary_frames_should_be_is_no_damaged_stream(kind: str) -> None:
    body = b'{"Output": {"__type": "a#UnknownOperationException"}, "Version": "1.0"}'
    parts = [body[:20], body[20:]] if kind else [body]
    outcome = await outcome_of(Response(parts, headers={"content-type": kind}), BEDROCK_CONVERSE)
    assert str(outcome) == "Error from remote service: UnknownOperationException"


async def test_an_html_page_is_no_stream_where_the_end_of_the_body_would_be_a_good_end() -> None:
    outcome = await outcome_of(Response([b"<html>"], headers={"content-type": "text/html"}), OLLAMA)
    assert isinstance(outcome, UpstreamError)
    assert "text/html" in outcome.reason


async def test_a_stream_without_text_is_a_good_one_if_it_says_how_it_ended() -> None:
    assert await outcome_of(Response([OPENAI_END], headers=JSON)) == Ending(native_finish_reason="stop")


async def test_an_end_that_says_nothing_is_good_only_where_a_stream_may_have_been() -> None:
    nothing = b": nothing\n\n"
    assert await outcome_of(Response([nothing], headers=SSE), OPEN_INFERENCE) == Ending()
    assert await outcome_of(Response([nothing]), OPEN_INFERENCE) == Ending()
    outcome = await outcome_of(Response([nothing], headers=JSON), OPEN_INFERENCE)
    assert isinstance(outcome, UpstreamError)
    assert "application/json instead of the stream" in outcome.reason


async def test_after_a_chunk_a_broken_stream_is_truncated_whatever_its_type() -> None:
    assert isinstance(await outcome_of(Response([openai_event("a")], headers=JSON)), StreamTruncated)


async def test_an_empty_body_of_the_right_type_is_truncated() -> None:
    assert isinstance(await outcome_of(Response([], headers=SSE)), StreamTruncated)


async def test_what_comes_before_the_first_chunk_is_kept_only_up_to_a_bound() -> None:
    comment = b": " + b"x" * (MAX_NON_STREAM_BYTES - 4) + b"\n\n"
    body = Response([comment, comment, b'{"error": {"message": "unseen"}}'], headers=SSE)
    assert isinstance(await outcome_of(body), StreamTruncated)


async def test_the_fields_of_a_good_end_hold_no_credential() -> None:
    end = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"%b"}],"model":"m-%b"}\n\ndata: [DONE]\n\n'
    key = SECRET.encode()
    outcome = await outcome_of(Response([openai_event("a"), end % (key.upper(), key.hex().encode())], headers=SSE))
    assert outcome == Ending(native_finish_reason="***", model="m-***")


async def test_with_and_without_the_fast_path_the_stream_is_the_same() -> None:
    assert isinstance(OPENAI_CHAT.decoder(), FastPathDecoder)
    fast = stream_of(openai_stream("a", "b"))
    plain = ProviderStream(
        openai_stream("a", "b"), _without_fast_path(OPENAI_CHAT_PLAIN).decoder(), Redactor({"key": SECRET})
    )
    assert await read_to_the_end(fast) == await read_to_the_end(plain)
    assert fast.outcome == plain.outcome


def _without_fast_path(spec: StreamSpec) -> StreamSpec:
    return StreamSpec(spec.name, spec.enable, spec.framing, spec.reader)
