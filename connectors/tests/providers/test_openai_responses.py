"""OpenAI Responses: events that one would not expect."""

from typing import Any

import pytest

from opensearch_ml_stream.connectors.chunks import Ending
from tests.providers.recorded_streams import join_chunks
from tests.providers.stream_bodies import decode, error_of, sse

RESPONSES = "openai/v1/responses"


@pytest.mark.parametrize(("reason", "finish"), [("max_output_tokens", "length"), ("content_filter", "content_filter")])
def test_an_incomplete_response_says_why(reason: str, finish: str) -> None:
    last = {
        "type": "response.incomplete",
        "response": {"status": "incomplete", "incomplete_details": {"reason": reason}},
    }
    _, outcome = decode(RESPONSES, sse(last))
    assert isinstance(outcome, Ending)
    assert (outcome.finish_reason, outcome.native_finish_reason) == (finish, reason)


@pytest.mark.parametrize(
    "last",
    [
        {"type": "response.failed", "response": {"error": {"code": "server_error", "message": "oh"}}},
        {"type": "error", "code": "server_error", "message": "oh", "param": None, "sequence_number": 3},
        {"type": "error", "error": {"type": "server_error", "message": "oh"}},
    ],
)
def test_a_failed_response_is_an_error_and_not_an_empty_text(last: dict[str, Any]) -> None:
    error = error_of(RESPONSES, sse(last))
    assert (error.provider_status, error.reason) == (500, "Error from remote service: oh")


CALL = {
    "type": "response.output_item.added",
    "output_index": 1,
    "item": {"type": "function_call", "call_id": "c", "name": "f"},
}
ARGUMENTS = {"type": "response.function_call_arguments.done", "output_index": 1, "arguments": '{"a":1}'}
COMPLETED = {"type": "response.completed", "response": {"status": "completed"}}


@pytest.mark.parametrize("fragments", [[], ['{"a"', "", ":1}"]])
def test_arguments_come_once_whether_in_fragments_or_whole(fragments: list[str]) -> None:
    deltas = [
        {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": text} for text in fragments
    ]
    chunks, outcome = decode(RESPONSES, sse(CALL, *deltas, ARGUMENTS, COMPLETED))
    assert join_chunks(chunks) == ("", "", [{"id": "c", "name": "f", "arguments": '{"a":1}'}])
    assert len(chunks) == 1 + (len(fragments) - 1 if fragments else 1)
    assert isinstance(outcome, Ending)
    assert outcome.finish_reason == "tool_calls"


@pytest.mark.parametrize("kind", ["response.output_text.delta", "response.reasoning_text.delta"])
def test_an_empty_delta_is_no_chunk(kind: str) -> None:
    chunks, outcome = decode(RESPONSES, sse({"type": kind, "delta": ""}, COMPLETED))
    assert chunks == []
    assert isinstance(outcome, Ending)
    assert outcome.usage is None


def item_done(**item: Any) -> dict[str, Any]:
    return {"type": "response.output_item.done", "output_index": 0, "item": {"id": "i1", "status": "completed", **item}}


@pytest.mark.parametrize(
    "inputs",
    [
        [{"type": "response.custom_tool_call_input.delta", "delta": "SELECT"},
         {"type": "response.custom_tool_call_input.delta", "delta": " 1"},
         {"type": "response.custom_tool_call_input.done", "input": "SELECT 1"}],
        [{"type": "response.custom_tool_call_input.done", "input": "SELECT 1"}],
    ],
)  # fmt: skip
def test_the_input_of_a_custom_tool_is_its_arguments(inputs: list[dict[str, Any]]) -> None:
    item = {"type": "custom_tool_call", "call_id": "c1", "name": "sql", "input": ""}
    added = {"type": "response.output_item.added", "output_index": 0, "item": item}
    chunks, outcome = decode(RESPONSES, sse(added, *({"output_index": 0, **event} for event in inputs), COMPLETED))
    assert join_chunks(chunks)[2] == [{"id": "c1", "name": "sql", "arguments": "SELECT 1"}]
    assert outcome == Ending("tool_calls", "completed")


@pytest.mark.parametrize(
    ("item", "arguments"),
    [
        ({"type": "local_shell_call", "call_id": "c1", "action": {"type": "exec"}}, '{"action":{"type":"exec"}}'),
        ({"type": "shell_call", "call_id": "c1", "action": {"commands": ["ls"]}, "environment": {"type": "local"}},
         '{"action":{"commands":["ls"]},"environment":{"type":"local"}}'),
        ({"type": "apply_patch_call", "call_id": "c1", "operation": {"path": "a"}}, '{"operation":{"path":"a"}}'),
        ({"type": "computer_call", "call_id": "c1", "action": {"type": "click"}}, '{"action":{"type":"click"}}'),
        ({"type": "tool_search_call", "call_id": "c1", "execution": "client", "arguments": {"q": "x"}},
         '{"q":"x"}'),
    ],
)  # fmt: skip
def test_a_call_that_asks_the_client_to_act_is_a_tool_call(item: dict[str, Any], arguments: str) -> None:
    chunks, outcome = decode(RESPONSES, sse(item_done(**item), COMPLETED))
    assert join_chunks(chunks)[2] == [{"id": "c1", "name": item["type"], "arguments": arguments}]
    assert outcome == Ending("tool_calls", "completed")


def test_an_approval_that_the_client_is_asked_for_is_a_tool_call_under_its_own_id() -> None:
    item = {"type": "mcp_approval_request", "name": "f", "server_label": "s", "arguments": "{}"}
    chunks, _ = decode(RESPONSES, sse(item_done(**item), COMPLETED))
    assert join_chunks(chunks)[2] == [
        {"id": "i1", "name": "mcp_approval_request", "arguments": '{"name":"f","server_label":"s","arguments":"{}"}'}
    ]


def test_an_approval_that_is_done_twice_is_asked_for_once() -> None:
    done = item_done(type="mcp_approval_request", name="f", server_label="s", arguments="{}")
    other = {**done, "output_index": 1, "item": {**done["item"], "id": "i2"}}
    chunks, _ = decode(RESPONSES, sse(done, done, other, COMPLETED))
    assert [call["id"] for call in join_chunks(chunks)[2]] == ["i1", "i2"]
    assert len(chunks) == 2


@pytest.mark.parametrize(
    "item",
    [
        {"type": "web_search_call"},
        {"type": "mcp_call", "name": "f", "arguments": "{}"},
        {"type": "shell_call", "call_id": "c1", "environment": {"type": "container_reference"}},
        {"type": "tool_search_call", "execution": "server"},
    ],
)
def test_a_call_that_openai_runs_itself_is_no_tool_call(item: dict[str, Any]) -> None:
    assert decode(RESPONSES, sse(item_done(**item), COMPLETED)) == ([], Ending("stop", "completed"))
