"""The calls of a conversation: what is sent on as it came, and what a whole answer says."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import orjson
import pytest

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, ToolCall, Usage, to_chunk_list
from opensearch_ml_stream.connectors.conversation.conversation import Conversation
from opensearch_ml_stream.connectors.conversation.dialect import OPENAI_CHAT, ClientRequest
from opensearch_ml_stream.connectors.decoding.contract import StreamDecoder
from opensearch_ml_stream.connectors.documents import read_connector, read_model
from opensearch_ml_stream.connectors.errors import StreamTruncated, UpstreamError
from opensearch_ml_stream.plugin.predictions.compiled_model import CompiledModel
from opensearch_ml_stream.plugin.predictions.conversation_calls import MAX_STREAM_BYTES, read_answer, stream_request
from tests.predictions.prediction_setup import CHAT_URL, SECRET, connector_body

CLIENT = ClientRequest(OPENAI_CHAT, {"messages": [{"role": "user", "content": "hi"}]}, lambda body: Conversation(()))


def model_of(document: Mapping[str, Any] = MappingProxyType({}), url: str = CHAT_URL) -> CompiledModel:
    stored = read_connector(connector_body(url, action={"request_body": '{"messages": ${parameters.messages}}'}))
    return CompiledModel("m", read_model(dict(document)), stored, {"key": SECRET})


def decoder() -> StreamDecoder:
    return stream_request(CLIENT, model_of())[1]()


def test_a_whole_response_without_an_answer_is_no_empty_one() -> None:
    for body in (b'{"id":"x","choices":[]}', b'{"id":"x","choices":null,"object":"chat.completion"}'):
        with pytest.raises(UpstreamError, match="has an unknown form"):
            read_answer(body, CLIENT, model_of(), names_model=False)
    empty = b'{"choices":[{"message":{"content":""},"finish_reason":"length"}]}'
    assert read_answer(empty, CLIENT, model_of(), names_model=False).ending.finish_reason == "length"


@pytest.mark.parametrize(
    "body", [{"detail": f"no {SECRET}"}, {"code": 7, "message": f"no {SECRET}"}, [{"message": f"no {SECRET}"}]]
)
def test_a_whole_response_of_no_known_form_is_the_error_that_it_tells_of(body: object) -> None:
    with pytest.raises(UpstreamError, match=r"^Error from remote service: no \*\*\*$"):
        read_answer(orjson.dumps(body), CLIENT, model_of(), names_model=False)


def test_no_event_that_goes_on_as_it_was_sent_has_the_model_s_credential_in_it() -> None:
    call = {"index": 0, "id": "1", "function": {"name": "f", "arguments": SECRET}}
    choice = {"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}
    [chunk] = to_chunk_list(decoder().feed(b"data: " + orjson.dumps({"id": "c", "choices": [choice]}) + b"\n\n"))
    assert chunk.event is not None
    assert SECRET.encode() not in chunk.event.data
    assert chunk.event.payload["id"] == "c"


OLLAMA_URL = "http://ollama:11434/api/chat"
LINES = b'{"message":{"content":"Hel"},"done":false}\n{"message":{"content":"lo"},"done":false}\n'
LAST = b'{"message":{"content":""},"done":true,"done_reason":"stop","prompt_eval_count":1,"eval_count":2,"model":"l"}\n'
EVENTS = (
    b'data: {"choices":[{"delta":{"content":"Hel"}}]}\n\ndata: {"choices":[{"delta":{"content":"lo","tool_calls":'
    b'[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}\n\n'
)


@pytest.mark.parametrize(
    ("url", "body", "calls", "ending"),
    [
        (OLLAMA_URL, LINES + LAST, (), Ending("stop", "stop", Usage(1, 2), "l")),
        (CHAT_URL, EVENTS + b"data: [DONE]\n\n", (ToolCall(0, "a", "f", "{}"),), Ending("tool_calls", "tool_calls")),
    ],
)
def test_a_stream_that_came_in_place_of_a_whole_answer_is_read(
    url: str, body: bytes, calls: tuple[ToolCall, ...], ending: Ending
) -> None:
    answer = read_answer(body, CLIENT, model_of(url=url), names_model=False)
    assert (answer.chunk, answer.ending) == (Chunk("Hello", tool_calls=calls), ending)
    assert (answer.response, answer.is_as_sent) == ({}, False)


def test_a_stream_in_place_of_a_whole_answer_fails_as_it_ends() -> None:
    with pytest.raises(StreamTruncated):
        read_answer(LINES, CLIENT, model_of(url=OLLAMA_URL), names_model=False)
    with pytest.raises(UpstreamError, match="out of memory"):
        read_answer(LINES + b'{"error":"out of memory"}\n', CLIENT, model_of(url=OLLAMA_URL), names_model=False)


def test_a_stream_that_no_guardrail_could_have_read_is_no_whole_answer() -> None:
    guarded = model_of({"guardrails": {"type": "local_regex", "output_guardrail": {"regex": [".*Hello.*"]}}})
    for body, model in ((EVENTS + b"data: [DONE]\n\n", guarded), (EVENTS + b" " * MAX_STREAM_BYTES, model_of())):
        with pytest.raises(UpstreamError, match="has an unknown form"):
            read_answer(body, CLIENT, model, names_model=False)


@pytest.mark.parametrize("beside", [b'"x":NaN', b'"x":"\xff"', b'"x":"\\ud83d"'])
def test_an_answer_that_is_not_quite_json_is_read_as_it_is_meant(beside: bytes) -> None:
    body = b'\xef\xbb\xbf{"choices":[{"message":{"content":"Hello"},"finish_reason":"stop"}],%b}' % beside
    answer = read_answer(body, CLIENT, model_of(), names_model=False)
    assert (answer.chunk, answer.ending) == (Chunk("Hello"), Ending("stop", "stop"))
    assert answer.response["x"] in (None, "\ufffd")
