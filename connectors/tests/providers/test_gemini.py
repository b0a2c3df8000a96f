"""Gemini: events that one would not expect."""

import json
from typing import Any

import pytest

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, ToolCall, Usage, to_chunk_list
from opensearch_ml_stream.connectors.errors import UnreadableEvent
from opensearch_ml_stream.connectors.known_providers import SHIPPED
from tests.providers.recorded_streams import join_chunks, play
from tests.providers.stream_bodies import decode, error_of, sse

GEMINI = "gemini/v1beta/generatecontent"


def test_a_blocked_prompt_ends_the_stream() -> None:
    _, outcome = decode(
        GEMINI, sse({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 4}})
    )
    assert isinstance(outcome, Ending)
    assert (outcome.finish_reason, outcome.native_finish_reason) == ("content_filter", "SAFETY")
    assert outcome.usage is not None
    assert outcome.usage.input_tokens == 4


@pytest.mark.parametrize("preset", [GEMINI, f"{GEMINI}/json-array"])
def test_an_error_of_gemini_keeps_its_code(preset: str) -> None:
    payload = {"error": {"code": 429, "message": "quota", "status": "RESOURCE_EXHAUSTED"}}
    data = sse(payload) if preset == GEMINI else json.dumps([payload]).encode()
    error = error_of(preset, data)
    assert (error.status, error.reason) == (429, "Error from remote service: quota")


def test_a_candidate_without_parts_is_no_chunk() -> None:
    candidates: list[dict[str, Any]] = [
        {"candidates": [{"content": {"role": "model"}}]},
        {"candidates": [{"content": {"parts": [{"text": ""}]}}]},
        {"candidates": [{"finishReason": "STOP"}]},
    ]
    assert decode(GEMINI, sse(*candidates)) == ([], Ending("stop", "STOP"))


def test_only_the_first_candidate_is_the_response() -> None:
    other = {"candidates": [{"index": 1, "content": {"parts": [{"text": "B"}]}, "finishReason": "MAX_TOKENS"}]}
    first = {"candidates": [{"index": 0, "content": {"parts": [{"text": "A"}]}, "finishReason": "STOP"}]}
    assert decode(GEMINI, sse(other, first)) == ([Chunk("A")], Ending("stop", "STOP"))


def call_parts(*calls: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"parts": [{"functionCall": call} for call in calls]}}
    return {"candidates": [candidate if finish is None else {**candidate, "finishReason": finish}]}


def piece(path: str, **value: Any) -> dict[str, Any]:
    return {"partialArgs": [{"jsonPath": path, **value}], "willContinue": True}


LIGHTS = [
    {"name": "set_lights", "willContinue": True},
    piece("$.color.name", stringValue="wa", willContinue=True),
    piece("$.color.name", stringValue="rm"),
    piece("$.lamps[0]['id']", numberValue=50),
    piece("$.lamps[1]", nullValue="NULL_VALUE"),
    piece("$.on", boolValue=True),
]
ARGUMENTS = '{"color":{"name":"warm"},"lamps":[{"id":50},null],"on":true}'


@pytest.mark.parametrize(
    "events",
    [
        [*(call_parts(call) for call in LIGHTS), call_parts({}), call_parts(finish="STOP")],
        [*(call_parts(call) for call in LIGHTS), call_parts(finish="STOP")],
        [call_parts(*LIGHTS, finish="STOP")],
    ],
    ids=["with a last part", "without a last part", "in one event"],
)
def test_arguments_that_come_value_by_value_make_one_json_text(events: list[dict[str, Any]]) -> None:
    chunks, outcome = decode(GEMINI, sse(*events))
    assert join_chunks(chunks)[2] == [{"id": None, "name": "set_lights", "arguments": ARGUMENTS}]
    assert outcome == Ending("tool_calls", "STOP")


def test_a_next_call_ends_the_one_before() -> None:
    parts = [{"name": "f", "willContinue": True}, piece("$.a", numberValue=1), {"name": "g", "args": {"b": 2}}]
    chunks, _ = decode(GEMINI, sse(call_parts(*parts, finish="STOP")))
    assert [call for chunk in chunks for call in chunk.tool_calls] == [
        ToolCall(0, name="f"), ToolCall(0, arguments='{"a":1'), ToolCall(0, arguments="}"),
        ToolCall(1, name="g", arguments='{"b":2}'),
    ]  # fmt: skip


def test_each_value_is_given_on_when_it_comes() -> None:
    decoder = SHIPPED.presets[GEMINI].decoder()
    given = []
    for call in [*LIGHTS, {}]:
        chunks = to_chunk_list(decoder.feed(sse(call_parts(call))))
        given.append("".join(part.arguments for chunk in chunks for part in chunk.tool_calls))
    assert given == ["", '{"color":{"name":"wa', "rm", '"},"lamps":[{"id":50', "},null", '],"on":true', "}"]


@pytest.mark.parametrize("arguments", [{}, {"a": {"b": 1}}])
def test_a_call_without_pieces_has_the_arguments_that_it_began_with(arguments: dict[str, Any]) -> None:
    start = {"name": "f", "args": arguments, "willContinue": True}
    chunks, _ = decode(GEMINI, sse(call_parts(start), call_parts({}, finish="STOP")))
    assert json.loads(join_chunks(chunks)[2][0]["arguments"]) == arguments


def test_pieces_go_on_from_the_arguments_that_a_call_began_with() -> None:
    start = {"name": "f", "args": {"a": 1}, "willContinue": True}
    chunks, _ = decode(GEMINI, sse(call_parts(start, piece("$.b", stringValue='"x\n')), call_parts({}, finish="STOP")))
    assert join_chunks(chunks)[2][0]["arguments"] == '{"a":1,"b":"\\"x\\n"}'


@pytest.mark.parametrize(
    "path", ["$", "$..a", "$.a[1000000000]", "$.a[-1]", "no path", "$.s.t", 5, "$.o.n", "$.l[1]", "$.l.a", "$.o[0]"]
)
def test_a_path_that_cannot_be_followed_is_an_error(path: Any) -> None:
    before = [piece("$.o.n", numberValue=1), piece("$.l[0]", numberValue=1), piece("$.s", stringValue="x")]
    start = call_parts({"name": "f", "willContinue": True}, *before)
    stream = sse(start, call_parts(piece(path, numberValue=1)), call_parts(finish="STOP"))
    assert isinstance(error_of(GEMINI, stream), UnreadableEvent)


def test_a_call_has_a_bounded_number_of_names() -> None:
    pieces = [piece(f"$.{'x' * 900}{number}", numberValue=1) for number in range(292)]
    decoder = SHIPPED.presets[GEMINI].decoder()
    chunks, outcome = play(decoder, [sse(call_parts({"name": "f", "willContinue": True}), *map(call_parts, pieces))])
    assert isinstance(outcome, UnreadableEvent)
    assert len(chunks) == 1 + 291


def test_thoughts_are_part_of_the_output_and_the_results_of_tools_of_the_input() -> None:
    counts = {"promptTokenCount": 10, "toolUsePromptTokenCount": 5, "candidatesTokenCount": 3, "thoughtsTokenCount": 4}
    last = {"candidates": [{"finishReason": "STOP"}], "usageMetadata": {**counts, "totalTokenCount": 22}}
    _, outcome = decode(GEMINI, sse(last))
    assert isinstance(outcome, Ending)
    assert outcome.usage == Usage(15, 7, 22, reasoning_tokens=4)
