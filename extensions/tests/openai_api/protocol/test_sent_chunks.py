"""Events of providers with OpenAI's API that are not well formed, repaired for clients that rely on the API."""

from typing import Any

import orjson
import pytest
from openai.types import Completion
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, ToolCall
from opensearch_ml_stream.connectors.conversation.answer import WholeAnswer, as_one
from opensearch_ml_stream.connectors.conversation.dialects.openai_as_sent import ChooseChoices
from opensearch_ml_stream.connectors.event import Event
from opensearch_ml_stream.connectors.providers.openai_chat import OpenAIChat
from opensearch_ml_stream.connectors.providers.openai_completions import OpenAICompletions
from opensearch_ml_stream.connectors.unstreamed_response import decode_whole_response
from opensearch_ml_stream.extensions.openai_api.protocol.completions_events import ChatEvents
from opensearch_ml_stream.extensions.openai_api.protocol.envelope import Envelope
from opensearch_ml_stream.extensions.openai_api.protocol.sent_chunks import SentChatChunks, SentChunks, SentTextChunks

Body = dict[str, Any]
ENVELOPE = Envelope("chatcmpl-1f", 1700000000, "my model")
HEAD = {"id": "p1", "object": "chat.completion.chunk", "created": 7, "model": "gpt"}
LOGPROBS: Body = {"content": [{"token": "a", "logprob": -1, "bytes": None, "top_logprobs": []}], "refusal": None}


def told(*sent: Body) -> list[Body]:
    """What a client of chat completions is told, which OpenAI's own types take."""
    reader, chunks = OpenAIChat(), SentChatChunks(ENVELOPE)
    payloads: list[Body] = []
    for payload in sent:
        read: list[Chunk] = []
        event = Event.of(payload)
        reader.read(event, read)
        payloads.append(chunks.event(as_one(read), event).payload)
    for payload in payloads:
        ChatCompletionChunk.model_validate(payload, strict=True)
    return payloads


def chunk(delta: Any = None, finish: Any = None, **more: Any) -> Body:
    return {**HEAD, "choices": [{"index": 0, "delta": delta or {}, "finish_reason": finish}], **more}


def deltas(payloads: list[Body], choice: int = 0) -> list[Body]:
    return [each["delta"] for payload in payloads for each in payload["choices"] if each["index"] == choice]


def calls(payloads: list[Body], choice: int = 0) -> list[Body]:
    return [call for delta in deltas(payloads, choice) for call in delta.get("tool_calls") or ()]


def finishes(payloads: list[Body], choice: int = 0) -> list[Any]:
    return [each["finish_reason"] for payload in payloads for each in payload["choices"] if each["index"] == choice]


def fragment(arguments: Any, **more: Any) -> Body:
    return {"function": {"arguments": arguments, **more.pop("function", {})}, **more}


def call(index: Any = 0, id: Any = "c1", name: Any = "f", arguments: Any = "", **more: Any) -> Body:
    return fragment(arguments, index=index, id=id, type="function", function={"name": name}, **more)


TWO_CALLS = [call(0, "c1", "f", "{}"), call(1, "c2", "g", "[]")]
ROLE = chunk({"role": "assistant", "content": ""})
WELL_FORMED = {
    "text": [ROLE, chunk({"content": "a"}, provider="X", choices_seen=None), chunk({}, "stop", usage=None)],
    "calls": [
        ROLE,
        chunk({"tool_calls": [call(arguments=""), call(1, "c2")]}),
        chunk({"tool_calls": [fragment("{}", index=1), fragment("{", index=0, id=None, type="function")]}),
        chunk({}, "tool_calls"),
    ],
    "a custom tool": [
        ROLE,
        chunk({"tool_calls": [{"index": 0, "id": "c", "type": "custom", "custom": {"name": "f", "input": ""}}]}),
        chunk({"tool_calls": [{"index": 0, "custom": {"input": "a"}}]}, "tool_calls"),
    ],
    "a function": [
        chunk({"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": ""}}),
        chunk({"function_call": {"arguments": "{}"}}, "function_call"),
    ],
    "a call with what others do not have": [ROLE, chunk({"tool_calls": [call(extra_content={"google": {"s": 1}})]})],
    "a refusal": [ROLE, chunk({"refusal": "No"}), chunk({}, "content_filter")],
    "reasoning": [ROLE, chunk({"reasoning": "r", "reasoning_content": None, "reasoning_details": [{"type": "x"}]})],
    "logprobs": [{**ROLE, "choices": [{**ROLE["choices"][0], "logprobs": LOGPROBS}]}],
    "several choices": [
        {**HEAD, "choices": [{"index": n, "delta": {"role": "assistant"}, "finish_reason": None} for n in (0, 1)]},
        {**HEAD, "choices": [{"index": 1, "delta": {"tool_calls": [TWO_CALLS[0]]}, "finish_reason": "tool_calls"}]},
        {**HEAD, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    ],
    "usage": [
        ROLE,
        {**HEAD, "choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2, "cost": 0.1,
         "prompt_tokens_details": {"cached_tokens": 0}, "completion_tokens_details": None, "plan": "free"}},
    ],
}  # fmt: skip


@pytest.mark.parametrize("events", WELL_FORMED.values(), ids=WELL_FORMED)
def test_what_is_well_formed_is_the_very_same(events: list[Body]) -> None:
    reader, chunks = OpenAIChat(), SentChatChunks(ENVELOPE)
    for event in map(Event.of, events):
        read: list[Chunk] = []
        reader.read(event, read)
        assert chunks.event(read[0] if read else Chunk(), event) is event


WHOLE_CALL = [call(arguments='{"a":'), fragment("1}", index=0)]
MENDED_CALLS: dict[str, tuple[list[Any], list[Body]]] = {
    "without an index": (
        [[{**WHOLE_CALL[0], "index": None}], [{"function": {"arguments": "1}"}}]], WHOLE_CALL,
    ),
    "index null, empty id, type and name": (
        [[{**WHOLE_CALL[0], "index": None}], [fragment("1}", index=None, id="", type="", function={"name": ""})]],
        WHOLE_CALL,
    ),
    "index as a string": ([[{**TWO_CALLS[0], "index": "0"}], [{**TWO_CALLS[1], "index": "1"}]], TWO_CALLS),
    "two under one index": ([[TWO_CALLS[0]], [{**TWO_CALLS[1], "index": 0}]], TWO_CALLS),
    "two under one index at once": ([[TWO_CALLS[0], {**TWO_CALLS[1], "index": 0}]], TWO_CALLS),
    "two of one id": (
        [[TWO_CALLS[0], {**TWO_CALLS[1], "id": "c1"}]], [TWO_CALLS[0], {**TWO_CALLS[1], "id": "call_1f_1"}],
    ),
    "two without ids under one index": (
        [[call(0, "", "f", "{}")], [call(0, None, "g", "[]")]],
        [call(0, "call_1f_0", "f", "{}"), call(1, "call_1f_1", "g", "[]")],
    ),
    "counted from 1": ([[{**TWO_CALLS[0], "index": 1}], [{**TWO_CALLS[1], "index": 2}]], TWO_CALLS),
    "named again": ([[WHOLE_CALL[0]], [{**call(arguments="1}"), "type": "function"}]],
                    [WHOLE_CALL[0], fragment("1}", index=0, type="function")]),
    "another id in each fragment": ([[WHOLE_CALL[0]], [fragment("1}", index=0, id="c9")]], WHOLE_CALL),
    "without a type": ([[{name: value for name, value in WHOLE_CALL[0].items() if name != "type"}]], WHOLE_CALL[:1]),
    "type null, later": ([[WHOLE_CALL[0]], [{**WHOLE_CALL[1], "type": None}]], WHOLE_CALL),
    "arguments as an object": ([[call(arguments={"a": 1})]], [call(arguments='{"a":1}')]),
    "an object in place of the list": ([TWO_CALLS[0]], TWO_CALLS[:1]),
    "function null": ([[WHOLE_CALL[0]], [{"index": 0, "function": None}], [WHOLE_CALL[1]]],
                      [WHOLE_CALL[0], {"index": 0, "function": None}, WHOLE_CALL[1]]),
    "with what others do not have": (
        [[{**TWO_CALLS[0], "index": None, "extra_content": {}}]], [{**TWO_CALLS[0], "extra_content": {}}],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("sent", "said"), MENDED_CALLS.values(), ids=MENDED_CALLS)
def test_calls_are_counted_from_0_and_named_once(sent: list[Any], said: list[Body]) -> None:
    payloads = told(ROLE, *(chunk({"tool_calls": one}) for one in sent), chunk({}, "stop"))
    assert calls(payloads) == said
    assert finishes(payloads)[-1] == "tool_calls"


def test_later_fragments_go_to_the_call_that_was_moved() -> None:
    two = [call(0, "c1", "f", "{"), call(0, "c2", "g", "[")]
    payloads = told(ROLE, *(chunk({"tool_calls": [one]}) for one in [*two, fragment("]", index=0)]))
    assert [(one["index"], one["function"]["arguments"]) for one in calls(payloads)] == [(0, "{"), (1, "["), (1, "]")]


@pytest.mark.parametrize("arguments", ["", None, {}])
def test_the_end_gives_arguments_to_calls_without(arguments: Any) -> None:
    for events in ([chunk({"tool_calls": [call(arguments=arguments)]}), chunk({}, "tool_calls")],
                   [chunk({"tool_calls": [call(arguments=arguments)]}, "stop")]):  # fmt: skip
        payloads = told(ROLE, *events)
        assert "".join(one["function"]["arguments"] or "" for one in calls(payloads)) == "{}"
        assert finishes(payloads)[-1] == "tool_calls"


def test_a_fragment_that_no_event_has_is_of_the_call_that_was_told() -> None:
    """Half a character waits for its other half, which does not come."""
    wire = ChatEvents(ENVELOPE)
    first = Event.of(chunk({"role": "assistant", "tool_calls": [call()]}))
    wire.chunks([Chunk(tool_calls=(ToolCall(0, "c1", "f"),), event=first)])
    data = wire.chunks([Chunk(tool_calls=(ToolCall(0, arguments="\ufffd"),))])
    assert calls([orjson.loads(data[6:])]) == [fragment("\ufffd", index=0)]


DELTAS: list[tuple[Any, Body]] = [
    (None, {}),
    ({"content": [{"type": "text", "text": "Hi"}]}, {"content": "Hi"}),
    ({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}, {"type": "text", "text": "a"}]},
     {"content": "a", "reasoning_content": "Hm"}),
    ({"content": [], "refusal": "No"}, {"content": "", "refusal": "No"}),
    ({"role": "", "content": "a"}, {"content": "a"}),
    ({"role": "assistant", "content": "a", "x": 1}, {"content": "a", "x": 1}),
    ({"tool_calls": {}, "function_call": "", "reasoning": [], "content": "a"}, {"content": "a"}),
    ({"function_call": {"name": "f", "arguments": {"a": 1}}}, {"function_call": {"name": "f", "arguments": '{"a":1}'}}),
]  # fmt: skip


@pytest.mark.parametrize(("sent", "said"), DELTAS)
def test_a_delta_has_the_types_of_the_api(sent: Any, said: Body) -> None:
    event = chunk()
    event["choices"][0]["delta"] = sent
    assert deltas(told(ROLE, event))[1] == said


def test_a_choice_begins_with_its_role() -> None:
    first, second = deltas(told(chunk({"content": "a"}), chunk({"content": "b"})))
    assert (first, second) == ({"content": "a", "role": "assistant"}, {"content": "b"})


@pytest.mark.parametrize(
    ("sent", "said"),
    [(["", "", "stop"], [None, None, "stop"]), (["eos"], ["stop"]), (["max_tokens", None], ["length", None]),
     (["stop", "stop"], ["stop", None]), (["stop", "length"], ["stop", "length"]), ([0, {}, ["stop"]], [None] * 3)],
)  # fmt: skip
def test_a_finish_reason_is_one_of_the_api_s_and_said_once(sent: list[Any], said: list[Any]) -> None:
    payloads = told(ROLE, *(chunk({"content": "a"}, finish) for finish in sent))
    assert finishes(payloads)[1:] == said


@pytest.mark.parametrize(
    ("delta", "said"), [({"tool_calls": [call()]}, "tool_calls"), ({"function_call": {"name": "f"}}, "function_call")]
)
def test_a_choice_with_calls_does_not_end_as_a_finished_one(delta: Body, said: str) -> None:
    for events in ([chunk(delta), chunk({}, "stop")], [chunk(delta, "stop")], [chunk({}, "stop"), chunk(delta, said)]):
        assert finishes(told(ROLE, *events))[-1] == said


def test_an_early_end_before_calls_is_corrected() -> None:
    wire, calls = ChatEvents(ENVELOPE), (ToolCall(0, "c1", "f"),)
    wire.chunks([Chunk(event=Event.of(chunk({"role": "assistant"}, "stop")))])
    wire.chunks([Chunk(tool_calls=calls, event=Event.of(chunk({"tool_calls": [call()]})))])
    assert b'"finish_reason":"tool_calls"' in wire.ending(Ending("tool_calls", "stop"), {})


@pytest.mark.parametrize("logprobs", ["x", [], {"tokens": ["a"], "content": "x"}, {"content": [{"token": 1}]}])
def test_logprobs_of_another_form_are_left_out(logprobs: Any) -> None:
    event = chunk({"content": "a"})
    event["choices"][0]["logprobs"] = logprobs
    assert told(ROLE, event)[1]["choices"][0] == {**event["choices"][0], "logprobs": None}


@pytest.mark.parametrize(
    "head",
    [{"id": None}, {"id": ""}, {"id": "other"}, {"object": "chat.completion"}, {"object": None}, {"created": 7.5},
     {"created": "7"}, {"created": None}, {"created": True}, {"model": None}, {"model": {"name": "gpt"}}],
)  # fmt: skip
def test_a_chunk_says_of_which_response_it_is(head: Body) -> None:
    event = chunk({"content": "a"}, x=1, **head)
    made = {"created": 1700000000, "model": "my model"}
    right = {name: made.get(name, HEAD[name]) for name in head}
    assert told(ROLE, event)[1] == {**event, **right}
    without = {name: value for name, value in event.items() if name not in head}
    assert told(ROLE, without)[1] == {**event, **right}


def test_a_stream_without_an_id_gets_one() -> None:
    first, second = told(chunk({"content": "a"}, id=None), chunk({"content": "b"}, id=""))
    assert first["id"] == second["id"] == "chatcmpl-1f"


@pytest.mark.parametrize("usage", ["", "none", [], {}, {"prompt_tokens": 1}, {"prompt_tokens": "1"}, 3])
def test_usage_of_another_form_is_left_out(usage: Any) -> None:
    assert told(ROLE, chunk({}, "stop", usage=usage))[1]["usage"] is None


@pytest.mark.parametrize("event", [{"choices": None}, {}, {"choices": False, "x": 1}])
def test_an_event_without_choices_has_none(event: Body) -> None:
    assert told(ROLE, {**HEAD, **event})[1] == {**HEAD, **event, "choices": []}


def test_choices_without_numbers_are_told_apart() -> None:
    first = {
        **HEAD,
        "choices": [
            {"delta": {"content": "a"}},
            {"index": "1", "delta": {"tool_calls": [{**TWO_CALLS[0], "index": None}]}},
        ],
    }
    second = {**HEAD, "choices": [{"index": "0", "delta": {"content": "b"}}]}
    last = {**HEAD, "choices": [{"index": 1.0, "delta": {}, "finish_reason": "stop"}]}
    payloads = told(first, second, last)
    assert [delta["content"] for delta in deltas(payloads)] == ["a", "b"]
    assert calls(payloads, choice=1) == TWO_CALLS[:1]
    assert finishes(payloads, choice=1) == [None, "tool_calls"]


def test_more_choices_than_the_api_has_are_not_told() -> None:
    many = {**HEAD, "choices": [{"delta": {"content": "a"}} for _ in range(200)]}
    assert len(told(many)[0]["choices"]) == 128


def test_what_is_repaired_is_what_texts_are_written_as() -> None:
    """A provider that writes no time, and an empty finish reason in all events."""
    wire, read, choose = ChatEvents(ENVELOPE), OpenAIChat(), ChooseChoices()
    data = b""
    for text in ("a", "é", "b"):
        event = Event.of({"id": "p1", "provider": "X", "choices": [{"delta": {"content": text}, "finish_reason": ""}]})
        chunks: list[Chunk] = []
        outcome = read.read(event, chunks)
        data += wire.chunks([chunks[0]._replace(event=choose(event, chunks, outcome))])
    payloads = [orjson.loads(line[6:]) for line in data.split(b"\n\n") if line]
    assert [delta.get("content") for delta in deltas(payloads)] == ["a", "é", "b"]
    for payload in payloads:
        ChatCompletionChunk.model_validate(payload, strict=True)
        assert (payload["provider"], payload["created"]) == ("X", 1700000000)


@pytest.mark.parametrize(
    ("choice", "said"),
    [({"text": "a"}, {}), ({"text": None, "finish_reason": "eos"}, {"text": "", "finish_reason": "stop"}),
     ({"index": None, "text": "a", "finish_reason": "", "logprobs": []}, {}),
     ({"index": 0, "text": "a", "finish_reason": None, "logprobs": {"tokens": ["a"], "x": 1}}, {})],
)  # fmt: skip
def test_chunks_of_texts_are_repaired_too(choice: Body, said: Body) -> None:
    reader, chunks = OpenAICompletions(), SentTextChunks(ENVELOPE)
    event, read = Event.of({"id": "p", "created": 1, "choices": [choice]}), list[Chunk]()
    reader.read(event, read)
    payload = chunks.event(read[0] if read else Chunk(), event).payload
    logprobs = {"logprobs": choice["logprobs"] or None} if "logprobs" in choice else {}
    right = {"index": 0, "text": "a", "finish_reason": None, **logprobs, **said}
    assert payload["choices"] == [right]
    assert (payload["object"], payload["model"], payload["id"]) == ("text_completion", "my model", "p")


def whole(response: Body, chunks: type[SentChunks] = SentChatChunks) -> Body:
    said = decode_whole_response(response, may_be_empty=True)
    assert said is not None
    told = chunks(ENVELOPE).response(WholeAnswer(*said, "m1", response, is_as_sent=True, extra={}))
    (Completion if chunks is SentTextChunks else ChatCompletion).model_validate(told, strict=True)
    return told


WHOLE: Body = {**HEAD, "object": "chat.completion", "x": 1}


def message(finish: Any = "stop", **members: Any) -> Body:
    message = {"role": "assistant", "content": "a", **members}
    return {**WHOLE, "choices": [{"index": 0, "message": message, "finish_reason": finish, "x": 1}]}


WHOLE_CALLS = [{name: value for name, value in one.items() if name != "index"} for one in TWO_CALLS]


@pytest.mark.parametrize(
    "response",
    [message(refusal=None, annotations=[]), message("tool_calls", content=None, tool_calls=WHOLE_CALLS),
     {**message(), "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2, "cost": 0.1}},
     {**WHOLE, "choices": [{**message()["choices"][0], "index": index} for index in (0, 1)]}],
)  # fmt: skip
def test_a_whole_response_that_is_well_formed_is_the_same(response: Body) -> None:
    assert whole(response) == response


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (message(None, tool_calls=None), message(tool_calls=None)),
        (message("end", content=[{"type": "text", "text": "a"}]), message()),
        (message(tool_calls=WHOLE_CALLS), message("tool_calls", tool_calls=WHOLE_CALLS)),
        (message(function_call={"name": "f", "arguments": {}}),
         message("function_call", function_call={"name": "f", "arguments": "{}"})),
        (message(tool_calls=[{**WHOLE_CALLS[0], "function": {"name": "f", "arguments": ""}}, WHOLE_CALLS[1]]),
         message("tool_calls", tool_calls=WHOLE_CALLS)),
        (message("tool_calls", tool_calls=[{**WHOLE_CALLS[0], "id": "", "type": None, "index": None}]),
         message("tool_calls", tool_calls=[{**WHOLE_CALLS[0], "id": "call_1f_0"}])),
        ({**message(), "id": None, "created": "1", "usage": {"prompt_tokens": 1.0, "completion_tokens": 2}},
         {**message(), "id": "chatcmpl-1f", "created": 1700000000,
          "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}}),
        ({**WHOLE, "choices": [{**message()["choices"][0], "index": None},
          message(tool_calls=WHOLE_CALLS)["choices"][0]]},
         {**WHOLE, "choices": [message()["choices"][0],
          {**message("tool_calls", tool_calls=WHOLE_CALLS)["choices"][0], "index": 1}]}),
    ],
)  # fmt: skip
def test_a_whole_response_is_repaired_too(sent: Body, said: Body) -> None:
    assert whole(sent) == said


def test_a_whole_text_is_repaired_too() -> None:
    choices = [{"text": "a", "finish_reason": "eos"}]
    told = whole({"id": "p", "object": "x", "created": 1, "model": "m", "choices": choices}, SentTextChunks)
    assert told["choices"] == [{"text": "a", "finish_reason": "stop", "index": 0}]
