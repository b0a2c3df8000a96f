"""Providers that tell something whole where others tell it in pieces, or besides: it is taken, and once."""

from collections.abc import Callable
from typing import Any

import pytest

from opensearch_ml_stream.connectors.chunks import Ending
from tests.providers.eventstream_frames import event
from tests.providers.recorded_streams import join_chunks
from tests.providers.stream_bodies import decode, delta, error_of, ndjson, sse

CALL = {"id": "c1", "name": "f", "arguments": '{"a":1}'}
OPENAI_CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}


def said(preset: str, body: bytes) -> tuple[str, str, list[Any]]:
    chunks, outcome = decode(preset, body)
    assert isinstance(outcome, Ending), outcome
    assert (outcome.finish_reason == "tool_calls") is any(chunk.tool_calls for chunk in chunks)
    return join_chunks(chunks)


# Chat completions with messages


def message(finish: str | None = None, delta: Any = None, **members: Any) -> dict[str, Any]:
    own = {} if delta is None else {"delta": delta}
    return {"choices": [{"index": 0, **own, "message": members, "finish_reason": finish}]}


@pytest.mark.parametrize(
    ("events", "text", "reasoning", "calls"),
    [
        # The answer so far beside every delta, as Perplexity has it.
        ([message(None, {"content": "Hel"}, content="Hel"), message("stop", {"content": "lo"}, content="Hello")],
         "Hello", "", []),
        ([message(None, {"content": "Hello"}, content="Hello"), message("stop", {"content": ""}, content="Hello")],
         "Hello", "", []),
        # A message in place of every delta: what is new, or all so far.
        ([message(content="Hel"), message(content="lo"), message("stop", content="")], "Hello", "", []),
        ([message(content="Hel"), message(content="Hello"), message("stop", content="Hello")], "Hello", "", []),
        # A message after the deltas, or after none.
        ([delta(content="Hello"), message("stop", content="Hello")], "Hello", "", []),
        ([delta(content="Hello"), message("stop", {}, content="Hello", tool_calls=[OPENAI_CALL])],
         "Hello", "", [CALL]),
        ([delta(role="assistant", content=""), message("stop", {}, content="Hello", reasoning_content="Hm")],
         "Hello", "Hm", []),
        ([delta(tool_calls=[{"index": 0, **OPENAI_CALL}]), message("stop", tool_calls=[OPENAI_CALL])], "", "", [CALL]),
        ([delta(reasoning_content="Hm"), message("stop", content="Hello", reasoning_content="Hm")], "Hello", "Hm", []),
        ([message("stop", refusal="No")], "No", "", []),
        ([{"choices": [{"index": 0, "message": None, "finish_reason": "stop"}]}], "", "", []),
    ],
)  # fmt: skip
def test_a_message_of_chat_completions_tells_what_no_delta_did(
    events: list[Any], text: str, reasoning: str, calls: list[Any]
) -> None:
    chunks, _ = decode("openai/v1/chat/completions", sse(*events, "[DONE]"))
    assert join_chunks(chunks) == (text, reasoning, calls)


# Anthropic and Converse


@pytest.mark.parametrize("stop", [[{"type": "content_block_stop", "index": 0}], []])
@pytest.mark.parametrize(
    ("block", "deltas", "told"),
    [
        ({"type": "text", "text": "Hel"}, [{"type": "text_delta", "text": "lo"}], ("Hello", "", [])),
        ({"type": "thinking", "thinking": "H", "signature": "s"}, [{"type": "thinking_delta", "thinking": "m"}],
         ("", "Hm", [])),
        ({"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}}, [], ("", "", [CALL])),
        ({"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}},
         [{"type": "input_json_delta", "partial_json": text} for text in ("", '{"a"', ":1}")], ("", "", [CALL])),
        ({"type": "tool_use", "id": "c1", "name": "f", "input": {}}, [],
         ("", "", [{**CALL, "arguments": "{}"}])),
    ],
)  # fmt: skip
def test_the_start_of_a_block_may_hold_all_of_it_and_its_end_may_be_missing(
    block: dict[str, Any], deltas: list[Any], told: Any, stop: list[Any]
) -> None:
    start: list[Any] = [
        {"type": "message_start", "message": {}},
        {"type": "content_block_start", "index": 0, "content_block": block},
    ]
    pieces: list[Any] = [{"type": "content_block_delta", "index": 0, "delta": piece} for piece in deltas]
    end: list[Any] = [{"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, {"type": "message_stop"}]
    assert said("anthropic/v1/messages", sse(*start, *pieces, *stop, *end)) == told


@pytest.mark.parametrize("stops", [True, False])
@pytest.mark.parametrize(
    ("start", "deltas", "told"),
    [
        ({"text": "Hel"}, [{"text": "lo"}], ("Hello", "", [])),
        ({"reasoningContent": {"text": "H"}}, [{"reasoningContent": {"text": "m"}}], ("", "Hm", [])),
        ({"toolUse": {"toolUseId": "c1", "name": "f", "input": {"a": 1}}}, [], ("", "", [CALL])),
        ({"toolUse": {"toolUseId": "c1", "name": "f", "input": '{"a":1}'}}, [], ("", "", [CALL])),
        ({"toolUse": {"toolUseId": "c1", "name": "f", "input": {}}},
         [{"toolUse": {"input": text}} for text in ('{"a"', ":1}")], ("", "", [CALL])),
        ({"toolUse": {"toolUseId": "c1", "name": "f"}}, [], ("", "", [{**CALL, "arguments": "{}"}])),
    ],
)  # fmt: skip
def test_the_start_of_a_block_of_converse_may_hold_all_of_it(
    start: dict[str, Any], deltas: list[Any], told: Any, stops: bool
) -> None:
    body = event("contentBlockStart", {"start": start, "contentBlockIndex": 0})
    body += b"".join(event("contentBlockDelta", {"delta": piece, "contentBlockIndex": 0}) for piece in deltas)
    body += event("contentBlockStop", {"contentBlockIndex": 0}) if stops else b""
    assert said("bedrock/converse", body + event("messageStop", {"stopReason": "end_turn"})) == told


def test_arguments_in_a_delta_may_be_an_object() -> None:
    block = {"type": "tool_use", "id": "c1", "name": "f"}
    delta = {"type": "input_json_delta", "partial_json": {"a": 1}}
    anthropic = sse(
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta}, {"type": "message_stop"},
    )  # fmt: skip
    start = {"contentBlockIndex": 0, "start": {"toolUse": {"toolUseId": "c1", "name": "f"}}}
    piece = {"contentBlockIndex": 0, "delta": {"toolUse": {"input": {"a": 1}}}}
    end = {"stopReason": "tool_use"}
    converse = (("contentBlockStart", start), ("contentBlockDelta", piece), ("messageStop", end))
    assert said("anthropic/v1/messages", anthropic) == ("", "", [CALL])
    assert said("bedrock/converse", b"".join(event(name, payload) for name, payload in converse)) == ("", "", [CALL])


# Cohere


def cohere(kind: str, finish: str | None = None, index: int = 0, **members: Any) -> dict[str, Any]:
    own = {"finish_reason": finish} if finish else {}
    return {"type": kind, "index": index, "delta": {"message": members, **own}}


def cohere_call(kind: str, arguments: str, **members: Any) -> dict[str, Any]:
    return cohere(kind, tool_calls={**members, "function": {"arguments": arguments, **members}})


WHOLE: dict[str, Any] = {"content": [{"type": "text", "text": "Hello"}], "tool_plan": "Hm", "tool_calls": [OPENAI_CALL]}
TEXT = [cohere("content-start", content={"text": "Hel"}), cohere("content-delta", content={"text": "lo"})]
START = cohere_call("tool-call-start", "", id="c1", name="f")
FRAGMENTS = [cohere_call("tool-call-delta", text) for text in ('{"a"', ":1}")]
PLAN = cohere("tool-plan-delta", tool_plan="Hm")


@pytest.mark.parametrize(
    "events",
    [
        [cohere("message-end", "COMPLETE", **WHOLE)],
        [cohere("message-start", **WHOLE), cohere("message-end", "COMPLETE")],
        [*TEXT, cohere("message-end", "COMPLETE", **WHOLE)],
        [PLAN, START, *FRAGMENTS, cohere("message-end", "COMPLETE", **WHOLE)],
        [PLAN, *TEXT, START, *FRAGMENTS, cohere("tool-call-end"), cohere("message-end", "COMPLETE", **WHOLE)],
        [PLAN, *TEXT, cohere_call("tool-call-start", '{"a":1}', id="c1", name="f"), cohere("message-end", "COMPLETE")],
        [PLAN, *TEXT, cohere_call("tool-call-start", '{"a":1}', id="c1", name="f"), *FRAGMENTS,
         cohere("tool-call-end"), cohere("message-end", "COMPLETE")],
        [PLAN, *TEXT, cohere_call("tool-call-start", '{"a"', id="c1", name="f"), FRAGMENTS[1],
         cohere("message-end", "COMPLETE")],
    ],
)  # fmt: skip
def test_a_message_of_cohere_is_told_once_wherever_it_is_whole(events: list[Any]) -> None:
    assert said("cohere/v2/chat", sse(*events)) == ("Hello", "Hm", [CALL])


@pytest.mark.parametrize("pieces", [[], [{"event_type": "text-generation", "text": "Hello"}]])
def test_the_end_of_coheres_first_version_tells_what_has_not_come(pieces: list[Any]) -> None:
    response: dict[str, Any] = {"text": "Hello", "tool_calls": [{"name": "f", "parameters": {"a": 1}}]}
    generation = {"event_type": "tool-calls-generation", "tool_calls": response["tool_calls"]}
    end = {"event_type": "stream-end", "finish_reason": "COMPLETE", "response": response}
    for calls in ([], [generation]):
        assert said("cohere/v1/chat", ndjson(*pieces, *calls, end)) == ("Hello", "", [{**CALL, "id": None}])


# Google, and text generation


def step(**members: Any) -> dict[str, Any]:
    return {"type": "function_call", "id": "c1", "name": "f", "arguments": {"a": 1}, **members}


@pytest.mark.parametrize(
    "events",
    [
        [],
        [{"event_type": "step.start", "index": 0, "step": step()}],
        [{"event_type": "step.start", "index": 0, "step": step()}, {"event_type": "step.stop", "index": 0}],
        [{"event_type": "step.start", "index": 0, "step": step(arguments={})},
         {"event_type": "step.delta", "index": 0, "delta": {"type": "arguments_delta", "arguments": '{"a":1}'}}],
    ],
)  # fmt: skip
def test_an_interaction_is_told_once_wherever_it_is_whole(events: list[Any]) -> None:
    whole = {"status": "completed", "steps": [step()]}
    end = {"event_type": "interaction.completed", "interaction": whole}
    assert said("gemini/v1beta/interactions", sse(*events, end)) == ("", "", [CALL])


def test_an_interaction_that_failed_is_an_error() -> None:
    whole = {"status": "failed", "error": {"code": 500, "message": "oh"}}
    error = error_of("gemini/v1beta/interactions", sse({"event_type": "interaction.failed", "interaction": whole}))
    assert (error.provider_status, error.reason) == (500, "Error from remote service: oh")


def test_a_call_of_gemini_that_is_told_once_more_is_one_call() -> None:
    pieces = {"name": "f", "id": "c1", "partialArgs": [{"jsonPath": "$.a", "numberValue": 1}], "willContinue": True}
    whole = {"name": "f", "id": "c1", "args": {"a": 1}}
    for first in (pieces, whole):
        parts = [{"content": {"parts": [{"functionCall": call}]}} for call in (first, whole)]
        body = sse(*({"candidates": [part]} for part in parts), {"candidates": [{"finishReason": "STOP"}]})
        assert said("gemini/v1beta/generatecontent", body) == ("", "", [CALL])


def test_calls_of_gemini_with_one_id_are_not_one_call() -> None:
    calls = [{"name": name, "id": "c1", "args": args} for name, args in (("f", {"a": 1}), ("f", {"a": 2}), ("g", {}))]
    parts = [{"functionCall": call} for call in calls]
    body = sse({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]})
    _, _, told = said("gemini/v1beta/generatecontent", body)
    arguments = [("f", '{"a":1}'), ("f", '{"a":2}'), ("g", "{}")]
    assert [(call["name"], call["arguments"]) for call in told] == arguments


@pytest.mark.parametrize("tokens", [[], ["Hel"], ["Hel", "lo"]])
def test_the_whole_text_of_text_generation_tells_what_no_token_did(tokens: list[str]) -> None:
    events: list[Any] = [{"token": {"text": text}} for text in tokens]
    assert said("huggingface/generate_stream", sse(*events, {"generated_text": "Hello"}))[0] == "Hello"
    other: list[Any] = [*events, {"token": {"text": "!"}}, {"generated_text": "Q: Hello"}]
    assert said("huggingface/generate_stream", sse(*other))[0] == "".join(tokens) + "!"


def gemini_text(text: str, finish: str | None = None) -> dict[str, Any]:
    own = {"finishReason": finish} if finish else {}
    return {"candidates": [{"content": {"parts": [{"text": text}]}, **own}]}


def dashscope_text(text: str, finish: str | None = None) -> dict[str, Any]:
    return {"output": {"choices": [{"message": {"content": text}, "finish_reason": finish or "null"}]}}


@pytest.mark.parametrize(
    ("preset", "event_of"), [("gemini/v1beta/generatecontent", gemini_text), ("dashscope/generation", dashscope_text)]
)
@pytest.mark.parametrize(
    ("texts", "whole"),
    [
        (["Hel", "lo", " you"], "Hello you"),
        (["Hel", "Hello", "Hello you", "Hello you"], "Hello you"),
        (["Hel", "Hello", "Hello you", ""], "Hello you"),
        (["Hello you", "Hello you, how are you"], "Hello you, how are you"),
        # Pieces that begin as all before them did, by chance.
        (["ha", "haha", "ha!"], "hahahaha!"),
        (["ha", "haha"], "hahaha"),
        (["ha", "ha", "haha"], "hahahaha"),
        (["no ", "no no", " never"], "no no no never"),
        (["Yes", "Yes"], "YesYes"),
    ],
)
def test_versions_of_a_text_are_told_from_pieces_of_it(
    preset: str, event_of: Callable[..., dict[str, Any]], texts: list[str], whole: str
) -> None:
    last = len(texts) - 1
    events = [event_of(text, "STOP" if place == last else None) for place, text in enumerate(texts)]
    assert said(preset, sse(*events))[0] == whole


def test_a_text_that_waits_comes_before_a_call() -> None:
    call = {"candidates": [{"content": {"parts": [{"functionCall": {"name": "f", "args": {}}}]}}]}
    end = {"candidates": [{"finishReason": "STOP"}]}
    chunks, _ = decode("gemini/v1beta/generatecontent", sse(gemini_text("ha"), gemini_text("haha"), call, end))
    assert [chunk.text for chunk in chunks] == ["ha", "haha", ""]
