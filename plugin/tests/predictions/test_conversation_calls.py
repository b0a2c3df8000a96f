"""The stream of a conversation whose client speaks its provider's dialect."""

from collections.abc import Sequence
from typing import Any

import orjson

from opensearch_ml_stream.connectors.chunks import Chunk, TextRun, to_chunk_list
from opensearch_ml_stream.connectors.conversation.conversation import Conversation
from opensearch_ml_stream.connectors.conversation.dialect import OPENAI_CHAT, ClientRequest
from opensearch_ml_stream.connectors.decoding.contract import StreamDecoder
from opensearch_ml_stream.connectors.documents import read_connector, read_model
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.plugin.predictions.compiled_model import CompiledModel
from opensearch_ml_stream.plugin.predictions.conversation_calls import stream_request
from tests.predictions.prediction_setup import SECRET, connector_body


def decoder() -> StreamDecoder:
    stored = read_connector(connector_body(action={"request_body": '{"messages": ${parameters.messages}}'}))
    model = CompiledModel("m", read_model({}), stored, {"key": SECRET})
    body = {"messages": [{"role": "user", "content": "hi"}]}
    return stream_request(ClientRequest(OPENAI_CHAT, body, lambda body: Conversation(())), model)[1]()


def event(delta: dict[str, Any], **more: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": None, **more}
    return b"data: " + orjson.dumps({"id": "c", "choices": [choice]}) + b"\n\n"


def events_in(chunks: Sequence[Chunk]) -> list[bool]:
    return [bool(chunk.event) for chunk in chunks]


ROLE = event({"role": "assistant", "content": ""})


def test_a_first_event_that_says_nothing_comes_with_the_second() -> None:
    stream = decoder()
    assert stream.feed(ROLE) == []
    chunks = to_chunk_list(stream.feed(event({"content": "a"})))
    assert (events_in(chunks), [chunk.text for chunk in chunks]) == ([True, False], ["", "a"])
    assert isinstance(stream.feed(event({"content": "b"})), TextRun)


def test_a_first_event_that_says_something_does_not_wait() -> None:
    assert events_in(to_chunk_list(decoder().feed(event({"content": "a"})))) == [True]


def test_no_later_event_waits() -> None:
    stream = decoder()
    assert stream.feed(event({}, index=1)) == []
    assert events_in(to_chunk_list(stream.feed(event({}, index=1)))) == [True, True]
    assert events_in(to_chunk_list(stream.feed(event({}, index=1)))) == [True]


def test_a_first_event_comes_with_the_end() -> None:
    stream = decoder()
    stream.feed(ROLE)
    assert events_in(to_chunk_list(stream.feed(event({}, finish_reason="stop")))) == [True, True]
    stream = decoder()
    stream.feed(ROLE)
    assert events_in(to_chunk_list(stream.feed(b"data: [DONE]\n\n"))) == [True]


def test_a_first_event_before_an_error_is_not_given() -> None:
    stream = decoder()
    stream.feed(ROLE)
    assert stream.feed(b'data: {"error":{"message":"no"}}\n\n') == []
    assert isinstance(stream.outcome, UpstreamError)


def test_no_event_that_goes_on_has_a_credential_in_it() -> None:
    stream = decoder()
    stream.feed(ROLE)
    call = {"index": 0, "id": "1", "function": {"name": "f", "arguments": SECRET}}
    chunks = to_chunk_list(stream.feed(event({"tool_calls": [call]})))
    assert events_in(chunks) == [True, True]
    assert SECRET.encode() not in b"".join(chunk.event for chunk in chunks)
