"""The events of streams in OpenAI's form, made and passed on."""

import json
from typing import Any

import pytest

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, TextRun, ToolCall, Usage
from opensearch_ml_stream.connectors.errors import Throttled, UpstreamError
from opensearch_ml_stream.connectors.event import Event
from opensearch_ml_stream.extensions.openai_api.protocol.completions_events import ChatEvents, CompletionsEvents
from opensearch_ml_stream.extensions.openai_api.protocol.envelope import Envelope

ENVELOPE = Envelope("chatcmpl-1f", 1700000000, "my model")
DONE = "data: [DONE]"
ROLE = {"role": "assistant", "content": ""}


def events(data: bytes) -> list[Any]:
    """Return payloads as JSON, and what is no JSON as it is."""
    text = data.decode()
    assert text.endswith("\n\n")
    return [
        json.loads(event[6:]) if event.startswith("data: {") else event
        for event in text.removesuffix("\n\n").split("\n\n")
    ]


def deltas(data: bytes) -> list[Any]:
    return [event["choices"][0]["delta"] for event in events(data)]


def sent(text: str = "", calls: tuple[ToolCall, ...] = (), **members: Any) -> Chunk:
    """Return a chunk of an event as its provider sent it."""
    of_response = {"id": "p1", "object": "chat.completion.chunk", "created": 7, "model": "gpt"}
    return Chunk(text, tool_calls=calls, event=Event.of({**of_response, **members}))


def as_it_is(chunk: Chunk) -> bytes:
    assert chunk.event is not None
    return b"data: " + chunk.event.data + b"\n\n"


def delta(delta: Any, finish_reason: str | None = None) -> list[Any]:
    return [{"index": 0, "delta": delta, "finish_reason": finish_reason}]


def test_a_text_begins_with_the_role_and_ends_with_the_reason_and_done() -> None:
    wire = ChatEvents(ENVELOPE)
    first = events(wire.chunks(TextRun(b'Hel\0lo \\"you\\"')))
    assert [event["choices"][0]["delta"] for event in first] == [ROLE, {"content": "Hel"}, {"content": 'lo "you"'}]
    for event in first:
        members = {name: event[name] for name in ("id", "object", "created", "model")}
        assert members == {
            "id": "chatcmpl-1f",
            "object": "chat.completion.chunk",
            "created": 1700000000,
            "model": "my model",
        }
    assert deltas(wire.chunks([Chunk("!")])) == [{"content": "!"}]
    usage = Usage(1, 2)
    assert events(wire.ending(Ending("length", usage=usage), {})) == [
        {**first[0], "choices": delta({}, "length")},
        DONE,
    ]


@pytest.mark.parametrize(("native", "reason"), [("stop", "stop"), (None, "stop"), ("refusal", "content_filter")])
def test_a_refusal_in_words_is_a_delta_of_its_own_in_an_answer_that_is_whole(native: str | None, reason: str) -> None:
    wire = ChatEvents(ENVELOPE)
    data = wire.chunks([Chunk("Well. ")]) + wire.chunks([Chunk("So, no.", refusal="no.")])
    data += wire.ending(Ending("content_filter", native), {})
    assert deltas(data.removesuffix(b"data: [DONE]\n\n")) == [
        ROLE, {"content": "Well. "}, {"content": "So, ", "refusal": "no."}, {},
    ]  # fmt: skip
    assert events(data)[-2]["choices"][0]["finish_reason"] == reason


def test_a_run_of_texts_is_not_decoded() -> None:
    wire = ChatEvents(ENVELOPE)
    wire.chunks([Chunk("a")])
    assert b'"content":"\\u00e9"' in wire.chunks(TextRun(b"\\u00e9"))


def test_reasoning_and_calls_are_deltas() -> None:
    wire = ChatEvents(ENVELOPE)
    assert deltas(
        wire.chunks(
            [
                Chunk(reasoning="Hm"),
                Chunk(tool_calls=(ToolCall(0, "a", "weather"), ToolCall(1, None, "time", "{}"))),
                Chunk(tool_calls=(ToolCall(0, arguments='{"x"'),)),
            ]
        )
    ) == [
        ROLE,
        {"reasoning_content": "Hm"},
        {
            "tool_calls": [
                {"index": 0, "id": "a", "type": "function", "function": {"name": "weather", "arguments": ""}},
                {"index": 1, "id": "call_1f_1", "type": "function", "function": {"name": "time", "arguments": "{}"}},
            ]
        },
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"x"'}}]},
    ]


@pytest.mark.parametrize(
    ("signatures", "said"), [(["c2ln"], [{"reasoning_signature": "c2ln"}]), (["c2ln", "other"], [])]
)
def test_the_proof_of_all_the_reasoning_comes_before_the_end(signatures: list[str], said: list[Any]) -> None:
    wire = ChatEvents(ENVELOPE)
    chunks = [Chunk(reasoning="Hm"), *(Chunk(signature=signature) for signature in signatures), Chunk("Yes")]
    assert deltas(wire.chunks(chunks)) == [ROLE, {"reasoning_content": "Hm"}, {"content": "Yes"}]
    assert [event["choices"][0]["delta"] for event in events(wire.ending(Ending(), {}))[:-1]] == [*said, {}]


def test_a_call_is_named_once_however_often_its_provider_does() -> None:
    wire = ChatEvents(ENVELOPE)
    first, again = deltas(wire.chunks([Chunk(tool_calls=(ToolCall(0, "a", "f", "{"),))] * 2))[1:]
    assert first["tool_calls"][0]["id"] == "a"
    assert again == {"tool_calls": [{"index": 0, "function": {"arguments": "{"}}]}


def test_calls_are_counted_from_0_in_the_order_in_which_they_begin() -> None:
    wire = ChatEvents(ENVELOPE)
    fragments = (ToolCall(3, "a", "f"), ToolCall(1, "b", "g"), ToolCall(3, arguments="{}"))
    said = deltas(wire.chunks([Chunk(tool_calls=(fragment,)) for fragment in fragments]))[1:]
    assert [delta["tool_calls"][0]["index"] for delta in said] == [0, 1, 0]


def test_a_client_of_functions_gets_a_function_call() -> None:
    wire = ChatEvents(ENVELOPE, calls_function=True)
    other = Chunk(tool_calls=(ToolCall(1, "b", "time", "{}"),))  # of which such a client cannot be told
    chunks = [Chunk(tool_calls=(ToolCall(0, "a", "weather"),)), other, Chunk(tool_calls=(ToolCall(0, arguments="{}"),))]
    assert deltas(wire.chunks(chunks))[1:] == [
        {"function_call": {"name": "weather", "arguments": ""}},
        {},
        {"function_call": {"arguments": "{}"}},
    ]
    assert events(wire.ending(Ending("tool_calls"), {}))[0]["choices"] == delta({}, "function_call")


def test_usage_comes_in_an_event_of_its_own_where_it_is_asked_for() -> None:
    wire = ChatEvents(ENVELOPE, wants_usage=True)
    ending = Ending(usage=Usage(10, 5, 15, cached_tokens=4, reasoning_tokens=3))
    role, finish, usage, done = events(wire.ending(ending, {}))
    assert (role["choices"][0]["delta"], finish["choices"], done) == (ROLE, delta({}, "stop"), DONE)
    assert usage["choices"] == []
    assert usage["usage"] == {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "total_tokens": 15,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 3},
    }


CALL = {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}, "x": 1}


def test_events_as_sent_go_on_as_they_are() -> None:
    wire = ChatEvents(ENVELOPE)
    first = sent(system_fingerprint="fp", obfuscation="xx", choices=delta(ROLE))
    assert wire.chunks([first]) == as_it_is(first)
    call = sent(calls=(ToolCall(0, "c", "f", "{}"),), choices=delta({"tool_calls": [CALL]}))
    finish = sent(choices=delta({}, "tool_calls"), x=1)
    assert wire.last([call, finish], Ending("tool_calls", "tool_calls"), {}) == (
        as_it_is(call) + as_it_is(finish) + b"data: [DONE]\n\n"
    )


def test_a_text_without_its_event_says_what_the_last_one_with_it_says() -> None:
    wire = ChatEvents(ENVELOPE)
    beside: dict[str, Any] = {"system_fingerprint": "fp", "usage": None, "provider": "X", "tier": "é"}
    choice = {"index": 0, "delta": {"content": "é", "refusal": None}, "logprobs": None, "finish_reason": None}
    wire.chunks([sent(choices=delta(ROLE)), sent("once", once=1, choices=delta({"content": "once"}))])
    wire.chunks([sent("é", **beside, obfuscation="xx", choices=[choice])])
    said = events(wire.chunks([Chunk("ü"), sent(choices=delta({"x": 1})), Chunk("a")]) + wire.chunks(TextRun(b"b")))
    texts = {"id": "p1", "object": "chat.completion.chunk", "created": 7, "model": "gpt", **beside}
    for event, text in zip((said[0], said[2], said[3]), "üab", strict=True):
        assert event == {**texts, "choices": [{**choice, "delta": {"content": text, "refusal": None}}]}


def test_a_text_says_no_role_again() -> None:
    wire = ChatEvents(ENVELOPE)
    wire.chunks([sent("a", choices=delta({"role": "assistant", "content": "a"}))])
    assert deltas(wire.chunks([Chunk("b")])) == [{"content": "b"}]


def test_an_event_before_the_first_choice_gives_no_envelope() -> None:
    wire = ChatEvents(ENVELOPE)
    filtered: dict[str, Any] = {
        "id": "",
        "object": "",
        "created": 0,
        "model": "",
        "choices": [],
        "prompt_filter_results": [],
    }
    assert wire.chunks([sent(**filtered)]) == as_it_is(sent(**filtered))
    wire.chunks([sent(choices=delta(ROLE))])
    assert events(wire.chunks([Chunk("a")]))[0]["id"] == "p1"


def test_the_provider_s_usage_is_not_said_twice() -> None:
    wire = ChatEvents(ENVELOPE, wants_usage=True)
    wire.chunks([sent(choices=delta(ROLE, "stop"))])
    usage = sent(choices=[], usage={"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3})
    assert wire.chunks([usage]) == as_it_is(usage)
    assert wire.ending(Ending("stop", "stop", Usage(1, 2)), {}) == b"data: [DONE]\n\n"


def test_usage_that_is_not_well_formed_is_said_at_the_end() -> None:
    wire = ChatEvents(ENVELOPE, wants_usage=True)
    counts = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    wire.chunks([sent(choices=delta(ROLE, "stop"), usage=counts)])
    assert events(wire.chunks([sent(choices=[], usage={**counts, "total_tokens": "3"})]))[0]["usage"] is None
    usage, _ = events(wire.ending(Ending("stop", "stop", Usage(1, 2)), {}))
    assert (usage["id"], usage["usage"]) == ("p1", counts)


def test_what_the_provider_left_out_of_the_end_is_made_up() -> None:
    wire = ChatEvents(ENVELOPE, wants_usage=True)
    wire.chunks([sent(choices=delta(ROLE))])
    finish, usage, done = events(wire.ending(Ending(usage=Usage(1, 2)), {}))
    assert (finish["id"], finish["choices"], usage["usage"]["total_tokens"], done) == ("p1", delta({}, "stop"), 3, DONE)


def test_an_event_of_several_lines_is_one_line() -> None:
    wire = ChatEvents(ENVELOPE)
    event = as_it_is(sent(choices=[]))
    lines = Event("", event[6:-2].replace(b",", b",\n"))
    assert wire.chunks([Chunk(event=lines)]) == event


def test_what_openai_has_no_place_for_is_a_comment_before_done() -> None:
    wire = ChatEvents(ENVELOPE)
    wire.chunks([Chunk("a")])
    _, comment, done = events(wire.ending(Ending("content_filter", guardrail="output"), {"model_id": "m2"}))
    name, _, fields = comment.removeprefix(": ").partition(" ")
    assert (name, json.loads(fields), done) == (
        "opensearch_ml_stream",
        {"guardrail": "output", "model_id": "m2"},
        DONE,
    )


def test_an_error_ends_the_stream_without_done() -> None:
    wire = ChatEvents(ENVELOPE)
    assert events(wire.error(UpstreamError("It broke", provider_status=500))) == [
        {
            "error": {
                "message": "It broke",
                "type": "server_error",
                "param": None,
                "code": "provider_error",
                "provider_status": 500,
            }
        }
    ]
    assert events(wire.error(Throttled("Too many")))[0]["error"]["type"] == "rate_limit_error"
    assert wire.heartbeat == b": ping\n\n"


def test_completions_have_texts_in_their_choices() -> None:
    wire = CompletionsEvents(Envelope("cmpl-1", 5, "m"), wants_usage=True)
    first = events(wire.chunks(TextRun(b"a\0b")))
    assert first[0] == {
        "id": "cmpl-1",
        "object": "text_completion",
        "created": 5,
        "model": "m",
        "choices": [{"text": "a", "index": 0, "logprobs": None, "finish_reason": None}],
    }
    assert first[1]["choices"][0]["text"] == "b"
    finish, usage, done = events(wire.ending(Ending(usage=Usage(1, 2)), {}))
    assert finish["choices"] == [{"text": "", "index": 0, "logprobs": None, "finish_reason": "stop"}]
    assert (usage["choices"], usage["usage"]["completion_tokens"], done) == ([], 2, DONE)
