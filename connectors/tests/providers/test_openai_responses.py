"""OpenAI Responses: events that one would not expect."""

from dataclasses import replace
from typing import Any

import pytest

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, ToolCall
from opensearch_ml_stream.connectors.conversation.answer import as_one, whole_calls
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
        {
            "type": "response.completed",
            "response": {"status": "failed", "error": {"type": "api_error", "message": "oh"}},
        },
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


# One source: deltas, what is done, and the whole at the end


def events_of(item: dict[str, Any], deltas: list[dict[str, Any]], done: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """The events of an item, by what they are: its start, its deltas, the end of its text, its end, the whole."""
    empty = {**item, "status": "in_progress"}
    empty |= {
        name: type(value)() for name, value in item.items() if name in ("content", "summary", "arguments", "input")
    }
    empty.pop("encrypted_content", None)
    place = {"item_id": item["id"], "output_index": 0, "content_index": 0, "summary_index": 0}
    whole = {"status": "completed", "output": [item]}
    return {
        "added": [{"type": "response.output_item.added", "output_index": 0, "item": empty}],
        "whole added": [{"type": "response.output_item.added", "output_index": 0, "item": item}],
        "deltas": [{**place, **delta} for delta in deltas],
        "done": [{**place, **event} for event in done],
        "item": [{"type": "response.output_item.done", "output_index": 0, "item": item}],
        "end": [{"type": "response.completed", "response": whole}],
        "empty end": [{"type": "response.completed", "response": {"status": "completed", "output": []}}],
    }


def told(kind: str, member: str, text: str, part: str = "") -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The deltas of a text, and the events that say that it is done."""
    deltas = [{"type": f"response.{kind}.delta", "delta": piece} for piece in (text[:3], text[3:])]
    done: list[dict[str, Any]] = [{"type": f"response.{kind}.done", member: text}]
    of_part = {"output_text": "content_part", "refusal": "content_part", "summary_text": "reasoning_summary_part"}
    if part:
        done.append({"type": f"response.{of_part[part]}.done", "part": {"type": part, member: text}})
    return deltas, done


ITEMS: dict[str, tuple[dict[str, Any], Any, Any]] = {
    "text": (
        {"type": "message", "id": "i1", "content": [{"type": "output_text", "text": "Hello you"}]},
        told("output_text", "text", "Hello you", "output_text"),
        Chunk("Hello you"),
    ),
    "refusal": (
        {"type": "message", "id": "i1", "content": [{"type": "refusal", "refusal": "I cannot"}]},
        told("refusal", "refusal", "I cannot", "refusal"),
        Chunk("I cannot", refusal="I cannot"),
    ),
    "summary": (
        {"type": "reasoning", "id": "i1", "summary": [{"type": "summary_text", "text": "I think"}]},
        told("reasoning_summary_text", "text", "I think", "summary_text"),
        Chunk(reasoning="I think"),
    ),
    "reasoning": (
        {"type": "reasoning", "id": "i1", "content": [{"type": "reasoning_text", "text": "I think"}]},
        told("reasoning_text", "text", "I think"),
        Chunk(reasoning="I think"),
    ),
    "call": (
        {"type": "function_call", "id": "i1", "call_id": "c1", "name": "f", "arguments": '{"a":1}'},
        told("function_call_arguments", "arguments", '{"a":1}'),
        Chunk(tool_calls=(ToolCall(0, "c1", "f", '{"a":1}'),)),
    ),
    "custom call": (
        {"type": "custom_tool_call", "id": "i1", "call_id": "c1", "name": "sql", "input": "SELECT 1"},
        told("custom_tool_call_input", "input", "SELECT 1"),
        Chunk(tool_calls=(ToolCall(0, "c1", "sql", "SELECT 1", is_text=True),)),
    ),
}  # fmt: skip
EVERYWHERE = [
    "added deltas done item end", "added deltas end", "added done end", "added done empty end", "added item end",
    "item empty end", "whole added empty end", "whole added done item end", "whole added deltas done item end", "end",
    "deltas empty end", "deltas done end", "done end", "deltas item end", "item item end", "done done item end",
]  # fmt: skip


def said(chunks: list[Chunk]) -> Chunk:
    whole = as_one(chunks)
    return whole._replace(tool_calls=whole_calls(whole.tool_calls))


@pytest.mark.parametrize("where", EVERYWHERE)
@pytest.mark.parametrize(("item", "texts", "chunk"), ITEMS.values(), ids=ITEMS)
def test_what_a_response_holds_is_taken_once_wherever_it_stands(
    item: dict[str, Any], texts: Any, chunk: Chunk, where: str
) -> None:
    if item["type"].endswith("call") and where == "deltas empty end":
        unknown = replace(chunk.tool_calls[0], id=None, name=None, is_text="custom" in item["type"])
        chunk = chunk._replace(tool_calls=(unknown,))
    known, names = events_of(item, *texts), where
    for name in sorted(known, key=len, reverse=True):
        names = names.replace(name, name.replace(" ", "_"))
    told_so = [event for name in names.split() for event in known[name.replace("_", " ")]]
    chunks, outcome = decode(RESPONSES, sse({"type": "response.created", "response": {"output": []}}, *told_so))
    assert said(chunks) == chunk
    assert isinstance(outcome, Ending)


@pytest.mark.parametrize("later", ["done", "item", "end"])
@pytest.mark.parametrize(("item", "texts", "chunk"), ITEMS.values(), ids=ITEMS)
def test_what_some_deltas_did_not_bring_comes_with_the_whole(
    item: dict[str, Any], texts: Any, chunk: Chunk, later: str
) -> None:
    known = events_of(item, *texts)
    end = known["end"] if later == "end" else known["empty end"]
    rest = [] if later == "end" else known[later]
    chunks, _ = decode(RESPONSES, sse(*known["added"], known["deltas"][0], *rest, *end))
    assert said(chunks) == chunk


def test_a_whole_that_does_not_go_on_from_the_deltas_adds_nothing() -> None:
    item, texts, _ = ITEMS["text"]
    known = events_of(item, *texts)
    other = {**known["deltas"][0], "delta": "Hullo"}
    assert said(decode(RESPONSES, sse(*known["added"], other, *known["item"], *known["end"]))[0]) == Chunk("Hullo")


@pytest.mark.parametrize("is_done", [True, False])
def test_a_signature_is_taken_once_wherever_it_stands(is_done: bool) -> None:
    item = {**ITEMS["summary"][0], "encrypted_content": "gAAA"}
    known = events_of(item, *ITEMS["summary"][1])
    done = known["item"] if is_done else []
    chunks, _ = decode(RESPONSES, sse(*known["added"], *known["deltas"], *done, *known["end"]))
    assert said(chunks) == Chunk(reasoning="I think", signature="gAAA")


def output_of(*items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "response.completed", "response": {"status": "completed", "output": [*items]}}


def message(text: str, id: str = "m1") -> dict[str, Any]:
    return {"type": "message", "id": id, "content": [{"type": "output_text", "text": text}]}


def call(id: str, arguments: str = "{}") -> dict[str, Any]:
    return {"type": "function_call", "id": f"fc_{id}", "call_id": id, "name": "f", "arguments": arguments}


DELTA = {"type": "response.output_text.delta", "delta": "Hello"}
THOUGHT = {"type": "response.reasoning_text.delta", "delta": "Hm"}
REASONING = {"type": "reasoning", "id": "r1", "content": [{"type": "reasoning_text", "text": "Hm"}]}


@pytest.mark.parametrize(
    ("events", "whole"),
    [
        # Deltas that say of no item that they are of it, as LiteLLM sends them.
        ([THOUGHT, DELTA, output_of(REASONING, message("Hello"), call("a"), call("b"))], ("Hello", "Hm", ["a", "b"])),
        # One place for all items.
        ([{**THOUGHT, "output_index": 0}, {**DELTA, "output_index": 0}, output_of(REASONING, message("Hello"))],
         ("Hello", "Hm", [])),
        ([item_done(**call("a")), item_done(**call("b")), output_of(call("a"), call("b"))], ("", "", ["a", "b"])),
        ([item_done(**message("Hel")), item_done(**message("lo", "m2")),
          output_of(message("Hel"), message("lo", "m2"))],
         ("Hello", "", [])),
        # Another id in every event, and fewer items at the end.
        ([{**THOUGHT, "output_index": 0, "item_id": "x1"}, {**DELTA, "output_index": 1, "item_id": "x2"},
          {"type": "response.output_item.done", "output_index": 1, "item": message("Hello", "x3")},
          output_of(message("Hello", "x4"))], ("Hello", "Hm", [])),
        # Messages that are one at the end, and the other way round.
        ([{**DELTA, "output_index": 0}, {**DELTA, "output_index": 1, "delta": " you"}, output_of(message("Hello you"))],
         ("Hello you", "", [])),
        ([{**DELTA, "output_index": 0}, output_of(message("Hel"), message("lo", "m2"))], ("Hello", "", [])),
        # Reasoning that is called a summary once, and a text once.
        ([{**THOUGHT, "output_index": 0}, output_of({"type": "reasoning", "id": "r", "summary": [
            {"type": "summary_text", "text": "Hm"}]})], ("", "Hm", [])),
        # Text goes on after it was said to be done.
        ([{**DELTA, "output_index": 0}, {"type": "response.output_text.done", "output_index": 0, "text": "Hello"},
          {**DELTA, "output_index": 0, "delta": " you"}, output_of(message("Hello you"))], ("Hello you", "", [])),
        # A start with the first of a text, which deltas go on from; a call whose name comes last.
        ([{"type": "response.content_part.added", "output_index": 0, "part": {"type": "output_text", "text": "Hel"}},
          {**DELTA, "output_index": 0, "delta": "lo"}, output_of(message("Hello"))], ("Hello", "", [])),
        ([{"type": "response.output_item.added", "output_index": 0, "item": {**call("a", ""), "name": ""}},
          {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": "{}"},
          item_done(**call("a"))
          , output_of(call("a"))], ("", "", ["a"])),
        ([{"type": "response.output_item.added", "output_index": 0, "item": message("Hello")}, output_of()],
         ("Hello", "", [])),
        ([output_of({"type": "message", "content": "Hello"})], ("Hello", "", [])),
        ([{"type": "response.completed", "response": {"status": "completed", "output": [None, {"type": []}, {}]}}],
         ("", "", [])),
    ],
)  # fmt: skip
def test_servers_that_name_items_in_other_ways_say_nothing_twice(
    events: list[dict[str, Any]], whole: tuple[str, str, list[str]]
) -> None:
    chunks, outcome = decode(RESPONSES, sse(*events))
    text, reasoning, calls = join_chunks(chunks)
    assert (text, reasoning, [one["id"] for one in calls]) == whole
    assert all((one["name"], one["arguments"]) == ("f", "{}") for one in calls)
    assert isinstance(outcome, Ending)


def test_a_call_without_a_name_that_only_begins_is_told_at_the_end() -> None:
    item = {"type": "local_shell_call", "id": "i1", "call_id": "c1", "action": {"type": "exec"}}
    begun = {"type": "response.output_item.added", "output_index": 0, "item": item}
    for events in ([begun, output_of()], [begun, output_of(item)], [output_of(item)]):
        chunks, outcome = decode(RESPONSES, sse(*events))
        assert [call["id"] for call in join_chunks(chunks)[2]] == ["c1"]
        assert outcome == Ending("tool_calls", "completed")


@pytest.mark.parametrize("place", [{"output_index": 0}, {"output_index": None}, {}])
def test_items_of_other_ids_at_one_place_are_others(place: dict[str, Any]) -> None:
    told = [
        {"type": f"response.{kind}", **place, **members}
        for id, text in (("i1", '"'), ("i2", "two"))
        for kind, members in (
            ("output_item.added", {"item": {"type": "message", "id": id, "content": []}}),
            ("output_text.done", {"item_id": id, "text": text}),
        )
    ]
    chunks, _ = decode(RESPONSES, sse({"type": "response.created", "response": {}}, *told))
    assert said(chunks).text == '"two'


@pytest.mark.parametrize("first", ["", None])
def test_a_call_that_gets_its_id_when_it_is_done_is_one(first: Any) -> None:
    item = {"type": "function_call", "id": "i1", "call_id": "c1", "name": "f", "arguments": "{}"}
    begun = {
        "type": "response.output_item.added",
        "output_index": 0,
        "item": item | {"call_id": first, "arguments": ""},
    }
    done = {"type": "response.output_item.done", "output_index": 0, "item": item}
    chunks, _ = decode(RESPONSES, sse({"type": "response.created", "response": {}}, begun, done))
    assert [(call.name, call.arguments) for call in said(chunks).tool_calls] == [("f", "{}")]


def test_response_done_ends_a_response() -> None:
    _, outcome = decode(RESPONSES, sse({"type": "response.done", "response": {"status": "completed"}}))
    assert isinstance(outcome, Ending) and outcome.finish_reason == "stop"
