"""Streams behind an output guardrail: what gets out, how they end, and that no check that fails lets text pass."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from opensearch_ml_stream.connectors.chunks import Chunk, Chunks, Ending, ToolCall, Usage, to_chunk_list
from opensearch_ml_stream.connectors.errors import MLStreamError, StreamTruncated, Unavailable, UpstreamError
from opensearch_ml_stream.connectors.predict.guardrails import stream_filters
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.plugin.predictions.guarded_stream import GuardedStream
from opensearch_ml_stream.plugin.predictions.provider_stream import ProviderStream
from opensearch_ml_stream.plugin.store.sqlite_store import SQLiteStore
from opensearch_ml_stream.rest_handlers.callers import ANYONE
from tests.predictions.prediction_setup import Setup, connector_body, prediction_setup
from tests.predictions.scripted_provider import (
    SSE,
    Response,
    ScriptedProvider,
    json_response,
    openai_event,
    openai_stream,
)

JUDGE = connector_body(action={"request_body": '{"question": "${parameters.question}"}'})
GUARDED_BY_JUDGE = {
    "type": "model",
    "output_guardrail": {"model_id": "judge", "response_validation_regex": '"?accept"?'},
}
USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}\n\ndata: [DONE]\n\n'
END = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"model":"gpt-x"}\n\n' + USAGE


class Percolator(SQLiteStore):
    """Finds the text `bad` in the index `words`; no other index exists."""

    async def percolate(self, index_name: str, document: Mapping[str, Any]) -> bool:
        if index_name != "words":
            raise Unavailable("no such index")
        return any("bad" in text for text in document.values())


@pytest.fixture
async def setup(tmp_path: Path) -> AsyncIterator[Setup]:
    store = Percolator(":memory:")
    async with prediction_setup(tmp_path, ScriptedProvider(), store, guardrail_held_characters=8) as setup:
        await setup.add_model(JUDGE, "judge")
        yield setup


def event(**delta: Any) -> bytes:
    return b'data: {"choices":[{"index":0,"delta":%b}]}\n\n' % orjson.dumps(delta)


async def streamed(
    setup: Setup, guardrails: dict[str, Any], response: Response, judge: Response | None = None
) -> tuple[list[Chunk], Ending | MLStreamError | None]:
    """The chunks of a whole stream of a model with these guardrails, and its outcome."""

    def respond(request: ProviderRequest) -> Response:
        question = orjson.loads(request.body).get("question")
        if question is None:
            return response
        return judge or json_response({"response": "reject" if "bad" in question else "accept"})

    setup.provider.script = respond
    await setup.add_model(connector_body(), guardrails=guardrails)
    chunks: list[Chunk] = []
    async with setup.predictor.stream(ANYONE, "m", {"inputs": "hi"}) as stream:
        assert isinstance(stream, GuardedStream)
        while stream.outcome is None:
            read = to_chunk_list(await stream.read())
            assert read or stream.outcome is not None
            chunks += read
    assert await stream.read() == []
    assert not any(call.is_open for call in setup.provider.calls)
    return chunks, stream.outcome


def patterns(*sources: str, **more: Any) -> dict[str, Any]:
    return {"output_guardrail": {"regex": list(sources), **more}}


def texts(chunks: list[Chunk]) -> str:
    return "".join(chunk.text for chunk in chunks)


def questions(setup: Setup) -> list[str]:
    """What the guard model was asked."""
    return [body["question"] for body in setup.provider.bodies if isinstance(body, dict) and "question" in body]


async def test_accepted_text_comes_late_and_whole(setup: Setup) -> None:
    response = Response([openai_event("0123456789"), openai_event("abcdef"), END], headers=SSE)
    chunks, outcome = await streamed(setup, patterns(".*bad.*"), response)
    assert [chunk.text for chunk in chunks] == ["01", "234567", "89abcdef"]
    assert outcome == Ending("stop", "stop", Usage(3, 2), "gpt-x")


async def test_a_match_ends_the_stream_as_a_content_filter_does_and_names_the_pattern(setup: Setup) -> None:
    response = openai_stream("a text that is b", "a", "d, and ", "more of it that nobody reads")
    chunks, outcome = await streamed(setup, patterns(".*worse.*", ".*bad.*"), response)
    assert "a text that is bad, and ".startswith(texts(chunks))
    assert "bad" not in texts(chunks)
    assert texts(chunks)
    assert outcome == Ending("content_filter", guardrail="regex[1]")
    assert response.reads < len(response.parts)
    assert setup.counted("mlstream_streams_total", model_id="m", outcome="ok") == 1


async def test_a_match_at_the_end_keeps_the_usage_that_the_provider_told(setup: Setup) -> None:
    response = Response([openai_event("bad"), END], headers=SSE)
    chunks, outcome = await streamed(setup, patterns(".*bad.*"), response)
    assert chunks == []
    assert outcome == Ending("content_filter", "stop", Usage(3, 2), "gpt-x", "regex[0]")


async def test_a_pattern_for_the_whole_text_holds_the_stream_to_its_end(setup: Setup) -> None:
    chunks, outcome = await streamed(setup, patterns("yes.*"), openai_stream("no, ", "never ever ", "at all"))
    assert [chunk.text for chunk in chunks] == ["no, never ever at all"]
    assert outcome == Ending("stop", "stop")


async def test_reasoning_is_guarded_apart_from_the_text(setup: Setup) -> None:
    response = [event(reasoning_content="a b"), event(content="ad"), event(reasoning_content="ad idea"), END]
    chunks, outcome = await streamed(setup, patterns(".*bad.*"), Response(response, headers=SSE))
    assert chunks == []
    assert outcome is not None
    response = [event(reasoning_content="a b"), event(content="ad, but a text"), event(reasoning_content="etter"), END]
    await setup.add_model(connector_body(), "other", guardrails=patterns(".*bad.*"))
    setup.provider.script = lambda request: Response(response, headers=SSE)
    async with setup.predictor.stream(ANYONE, "other", {"inputs": "hi"}) as stream:
        chunks = [chunk for _ in range(2) for chunk in to_chunk_list(await stream.read())]
        assert isinstance(stream.outcome, Ending)
    assert texts(chunks) == "ad, but a text"
    assert "".join(chunk.reasoning for chunk in chunks) == "a better"


async def test_the_proof_of_reasoning_comes_with_the_last_of_it(setup: Setup) -> None:
    def delta(index: int, **fields: str) -> bytes:
        return b'data: {"type":"content_block_delta","index":%d,"delta":%b}\n\n' % (index, orjson.dumps(fields))

    blocks = [
        delta(0, type="thinking_delta", thinking="a long thought"),
        delta(0, type="signature_delta", signature="c2ln"),
        delta(1, type="text_delta", text="and what is said of it"),
        b'data: {"type":"message_stop"}\n\n',
    ]
    connector = connector_body("https://api.anthropic.com/v1/messages")
    await setup.add_model(connector, "other", guardrails=patterns(".*bad.*"))
    setup.provider.script = lambda request: Response(blocks, headers=SSE)
    async with setup.predictor.stream(ANYONE, "other", {"inputs": "hi"}) as stream:
        chunks: list[Chunk] = []
        while stream.outcome is None:
            chunks += to_chunk_list(await stream.read())
    signed = next(place for place, chunk in enumerate(chunks) if chunk.signature)
    assert [chunk.signature for chunk in chunks if chunk.signature] == ["c2ln"]
    assert not any(chunk.reasoning for chunk in chunks[signed + 1 :])


def tool_call(arguments: str) -> Response:
    function = {"name": "find", "arguments": arguments[:9]}
    return Response(
        [
            event(tool_calls=[{"index": 0, "id": "call_1", "type": "function", "function": function}]),
            event(tool_calls=[{"index": 0, "function": {"arguments": arguments[9:]}}]),
            openai_event("text"),
            b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}\n\ndata: [DONE]\n\n',
        ],
        headers=SSE,
    )


async def test_tool_calls_are_held_to_the_end_and_joined(setup: Setup) -> None:
    chunks, outcome = await streamed(setup, patterns(".*bad.*"), tool_call('{"words": "good"}'))
    assert chunks == [Chunk("text", "", (ToolCall(0, "call_1", "find", '{"words": "good"}'),))]
    assert outcome == Ending("tool_calls", "tool_calls")


@pytest.mark.parametrize("guardrails", [patterns(".*bad.*"), GUARDED_BY_JUDGE, patterns(".*find.*")])
async def test_a_word_in_the_arguments_of_a_tool_call_is_found_behind_escapes(
    setup: Setup, guardrails: dict[str, Any]
) -> None:
    chunks, outcome = await streamed(setup, guardrails, tool_call('{"words": "b\\u0061d"}'))
    assert [chunk for chunk in chunks if chunk.tool_calls] == []
    assert isinstance(outcome, Ending)
    assert outcome.finish_reason == "content_filter"


async def test_stop_words_are_looked_for_at_the_ends_of_sentences(setup: Setup) -> None:
    words = [{"index_name": "words", "source_fields": ["text"]}]
    response = openai_stream("All is g", "ood. Then it is b", "ad. And so", " on.")
    chunks, outcome = await streamed(setup, {"output_guardrail": {"stop_words": words}}, response)
    assert texts(chunks) == "All is good."
    assert outcome == Ending("content_filter", guardrail="stop words in index [words]")


async def test_stop_words_that_cannot_be_searched_are_an_error_and_nothing_passes(setup: Setup) -> None:
    words = [{"index_name": "gone", "source_fields": ["text"]}]
    chunks, outcome = await streamed(setup, patterns(".*x.*", stop_words=words), openai_stream("All is good."))
    assert chunks == []
    assert isinstance(outcome, UpstreamError)
    assert (outcome.status, outcome.reason) == (
        424,
        "its stop words in index [gone] cannot be searched: no such index",
    )


async def test_a_guard_model_is_asked_at_the_end_of_each_sentence_with_the_one_before(setup: Setup) -> None:
    response = openai_stream("One.", " Two", r". \n", "Three. Four. F", "ive")
    chunks, outcome = await streamed(setup, GUARDED_BY_JUDGE, response)
    assert [chunk.text for chunk in chunks] == ["One.", " Two. \n", "Three. Four.", " Five"]
    assert questions(setup) == ["One.", "One. Two. \n", " Two. \nThree. Four.", "Three. Four. Five"]
    assert outcome == Ending("stop", "stop")


async def test_a_sentence_that_a_guard_model_refuses_is_not_sent(setup: Setup) -> None:
    response = openai_stream("One. ", "This is bad. ", "This is not read.")
    chunks, outcome = await streamed(setup, GUARDED_BY_JUDGE, response)
    assert texts(chunks) == "One."
    assert outcome == Ending("content_filter", guardrail="guard model [judge]")
    assert response.reads == 2


@pytest.mark.parametrize("judge", [json_response({"error": "over quota"}, 429), Response([b"no JSON"], 500)])
async def test_a_guard_model_that_fails_is_an_error_and_nothing_passes(setup: Setup, judge: Response) -> None:
    chunks, outcome = await streamed(setup, GUARDED_BY_JUDGE, openai_stream("One. ", "Two."), judge)
    assert chunks == []
    assert isinstance(outcome, UpstreamError)
    assert outcome.status == 424
    assert outcome.reason.startswith("its guard model [judge] cannot be called: Error from remote service")
    assert setup.counted("mlstream_streams_total", model_id="m", outcome="error") == 1


async def test_a_model_may_not_guard_its_own_stream(setup: Setup) -> None:
    rails = {"type": "model", "output_guardrail": {"model_id": "m", "response_validation_regex": ".*"}}
    chunks, outcome = await streamed(setup, rails, openai_stream("One. "))
    assert chunks == []
    assert isinstance(outcome, UpstreamError)
    assert outcome.reason.endswith("by this very guardrail")


async def test_text_before_a_broken_connection_is_checked_and_sent(setup: Setup) -> None:
    broken = Response([openai_event("held back"), UpstreamError("the connection broke")], headers=SSE)
    chunks, outcome = await streamed(setup, patterns(".*bad.*"), broken)
    assert texts(chunks) == "held back"
    assert isinstance(outcome, StreamTruncated)


async def test_a_stream_without_text_has_nothing_to_refuse(setup: Setup) -> None:
    chunks, outcome = await streamed(setup, patterns("[a-z]*"), Response([END], headers=SSE))
    assert (chunks, outcome) == ([], Ending("stop", "stop", Usage(3, 2), "gpt-x"))


async def test_a_text_that_is_too_long_to_be_held_is_an_error(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_filters, "MAX_HELD_CHARACTERS", 100)
    chunks, outcome = await streamed(setup, patterns("bad"), openai_stream("x" * 60, "x" * 60))
    assert chunks == []
    assert isinstance(outcome, UpstreamError)


async def test_chunks_are_pumped_until_the_client_is_slow_or_the_stream_has_ended(setup: Setup) -> None:
    setup.provider.script = lambda request: openai_stream("0123456789", "abcdef", "ghijkl")
    await setup.add_model(connector_body(), guardrails=patterns(".*bad.*"))
    written: list[str] = []

    def encode(chunks: Chunks) -> bytes:
        return texts(to_chunk_list(chunks)).encode()

    def write(data: bytes) -> bool:
        written.append(data.decode())
        return len(written) != 2

    async with setup.predictor.stream(ANYONE, "m", {"inputs": "hi"}) as stream:
        assert await stream.pump(encode, write) == []
        assert written == ["01", "234567"]
        last = await stream.pump(encode, write)
        assert (written[2:], last) == (["89abcd"], [Chunk("efghijkl")])
        assert stream.outcome == Ending("stop", "stop")


@pytest.mark.parametrize("guardrails", [None, {"input_guardrail": {"regex": [".*bad.*"]}}])
async def test_a_stream_without_an_output_guardrail_is_the_providers_own(setup: Setup, guardrails: Any) -> None:
    setup.provider.script = lambda request: openai_stream("text")
    await setup.add_model(connector_body(), guardrails=guardrails)
    async with setup.predictor.stream(ANYONE, "m", {"inputs": "hi"}) as stream:
        assert type(stream) is ProviderStream
