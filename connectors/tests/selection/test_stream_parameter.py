"""`_stream`: a connector's own description of its provider's stream."""

import json
from typing import Any

import jsonpath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, ToolCall
from opensearch_ml_stream.connectors.errors import InvalidRequest, StreamTruncated, UpstreamError
from opensearch_ml_stream.connectors.stream_parameter import read_stream_spec
from opensearch_ml_stream.connectors.syntax.jsonpath import compile_path
from tests.providers.eventstream_frames import event
from tests.providers.recorded_streams import join_chunks, play


def spec_text(**fields: Any) -> str:
    return json.dumps(fields)


def played(text: str, data: bytes) -> tuple[list[Chunk], object]:
    return play(read_stream_spec(text).decoder(), [data])


def test_a_server_of_ones_own_is_described_without_code() -> None:
    text = spec_text(
        enable={"body": {"live": True}, "url": {"replace": ["/ask", "/ask_live"], "query": {"v": "2"}},
                "headers": {"Accept": "text/event-stream"}, "drop": ["cache"]},
        framing="ndjson",
        events={"text": "$.out.text", "reasoning": "$.out.why", "tool_calls": "$.out.calls", "finish": "$.end.reason",
                "usage": "$.end.usage", "error": "$.problem"},
        match={"field": "kind", "text": ["piece"], "finish": "end"},
        terminator={"event": ["end"]},
    )  # fmt: skip
    enable = read_stream_spec(text).enable
    assert (enable.body, enable.url, enable.query) == ({"live": True}, (("/ask", "/ask_live"),), {"v": "2"})
    assert (enable.headers, enable.drop) == ({"Accept": "text/event-stream"}, ("cache",))
    call = {"id": "1", "function": {"name": "f", "arguments": "{}"}}
    data = b"".join(
        json.dumps(line).encode() + b"\n"
        for line in (
            {"kind": "start", "out": {"text": "not this"}},
            {"kind": "piece", "out": {"text": "a", "why": "b"}},
            {"kind": "tool", "out": {"calls": [call]}},
            {"kind": "end", "end": {"reason": "max_tokens", "usage": {"prompt_tokens": 1, "completion_tokens": 2}}},
            {"kind": "piece", "out": {"text": "after the end"}},
        )
    )
    chunks, outcome = played(text, data)
    assert chunks == [Chunk("", "", ()), Chunk("a", "b"), Chunk(tool_calls=(ToolCall(0, "1", "f", "{}"),))][1:]
    assert isinstance(outcome, Ending)
    assert (outcome.finish_reason, outcome.native_finish_reason) == ("length", "max_tokens")
    assert outcome.usage is not None
    assert outcome.usage.as_dict() == {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    assert isinstance(played(text, data[: data.index(b'{"kind": "end"')])[1], StreamTruncated)


def test_the_name_of_an_event_counts_where_its_data_has_no_kind() -> None:
    text = spec_text(framing="aws_eventstream", events={"text": "$.t"}, match={"text": "piece"})
    data = event("other", {"t": "no"}) + event("piece", {"t": "yes"})
    assert played(text, data)[0] == [Chunk("yes")]


def test_an_error_of_a_described_server_is_the_outcome() -> None:
    text = spec_text(events={"text": "$.t", "error": "$.error"}, terminator={"data": "END"})
    _, outcome = played(text, b'data: {"t":"a"}\n\ndata: {"error":{"message":"full"}}\n\ndata: END\n\n')
    assert isinstance(outcome, UpstreamError)
    assert outcome.reason == "Error from remote service: full"


@pytest.mark.parametrize(
    ("terminator", "data", "good"),
    [
        (None, b'data: {"t":"a"}\n\n', True),
        ({"data": "[DONE]"}, b'data: {"t":"a"}\n\n', False),
        ({"data": "[DONE]"}, b'data: {"t":"a"}\n\ndata: [DONE]\n\n', True),
        ({"data": "[DONE]", "eof_ok": True}, b'data: {"t":"a"}\n\n', True),
        ({"event": "bye", "eof_ok": False}, b'data: {"t":"a"}\n\n', False),
        ({"event": "bye"}, b'data: {"t":"a"}\n\nevent: bye\ndata: {}\n\n', True),
    ],
)
def test_the_terminator_decides_what_the_end_of_the_body_means(terminator: Any, data: bytes, good: bool) -> None:
    fields = {} if terminator is None else {"terminator": terminator}
    _, outcome = played(spec_text(events={"text": "$.t"}, **fields), data)
    assert isinstance(outcome, Ending) == good


def test_cumulative_text_is_sent_on_as_what_is_new() -> None:
    text = spec_text(events={"text": "$.t"}, mode="cumulative")
    assert played(text, b'data: {"t":"a"}\n\ndata: {"t":"ab"}\n\n')[0] == [Chunk("a"), Chunk("b")]


def test_plain_text_needs_no_events() -> None:
    chunks, outcome = played('{"framing": "text"}', "héllo".encode())
    assert join_chunks(chunks)[0] == "héllo"
    assert outcome == Ending()


def test_a_preset_may_be_changed_in_part() -> None:
    text = spec_text(preset="openai/v1/chat/completions", enable={"body": {"stream": True}})
    assert read_stream_spec(text).enable.body == {"stream": True}
    _, outcome = played(text, b'data: {"choices":[{"delta":{"content":"a"},"finish_reason":"length"}]}\n\n')
    assert outcome == Ending("length", "length")


def test_the_end_of_the_body_is_a_good_end_after_a_finish_reason() -> None:
    text = spec_text(events={"text": "$.t", "finish": "$.f"}, terminator={"data": "[DONE]"})
    assert played(text, b'data: {"t":"a","f":"length"}\n\n')[1] == Ending("length", "length")


def test_an_event_that_says_that_it_is_not_the_last_has_no_finish_reason() -> None:
    decoder = read_stream_spec(
        spec_text(events={"text": "$.t", "finish": "$.why"}, terminator={"data": "[DONE]"})
    ).decoder()
    decoder.feed(b'data: {"t": "a", "why": "null"}\n\n')
    assert not decoder.is_ending
    decoder.feed(b'data: {"t": "b", "why": "length"}\n\n')
    assert decoder.is_ending
    decoder.close()
    assert decoder.outcome == Ending("length", "length")


def test_tool_calls_without_a_finish_reason_end_with_tool_calls() -> None:
    text = spec_text(events={"text": "$.t", "tool_calls": "$.calls"})
    data = b'data: {"calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]}\n\n'
    assert played(text, data)[1] == Ending("tool_calls")


def test_a_call_without_arguments_has_an_empty_object_where_the_answer_ends() -> None:
    text = spec_text(events={"text": "$.t", "tool_calls": "$.calls", "finish": "$.why"})
    call = b'{"calls": [{"index": 0, "id": "c", "function": {"name": "f"}}]}'
    chunks, _ = played(text, b"data: " + call + b'\n\ndata: {"why": "stop"}\n\n')
    assert "".join(fragment.arguments for chunk in chunks for fragment in chunk.tool_calls) == "{}"


def test_a_preset_may_come_in_another_framing() -> None:
    text = spec_text(preset="openai/v1/chat/completions", framing="ndjson")
    assert not read_stream_spec(text).has_fast_path
    chunks, outcome = played(text, b'{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}\n[DONE]\n')
    assert chunks == [Chunk("a")]
    assert outcome == Ending("stop", "stop")


def test_the_payload_of_sagemaker_may_be_named() -> None:
    text = spec_text(preset="sagemaker/invocations", payload={"framing": "ndjson", "events": {"text": "$.x"}})
    data = event("PayloadPart", b'{"x":"a"}\n{"x"') + event("PayloadPart", b':"b"}\n')
    assert played(text, data) == ([Chunk("a"), Chunk("b")], Ending())
    assert read_stream_spec(text).enable.url == (("/invocations", "/invocations-response-stream"),)


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("{", "_stream:"),
        ("[]", "_stream:"),
        ('{"presets": "x"}', "_stream.presets:"),
        ('{"preset": "x"}', "_stream.preset:"),
        ('{"preset": 1}', "_stream.preset:"),
        ("{}", "_stream.events:"),
        ('{"events": {"finish": "$.a"}}', "_stream.events.text:"),
        ('{"events": {"text": "a"}}', "_stream.events.text:"),
        ('{"events": {"text": "$.["}}', "_stream.events.text:"),
        ('{"events": {"text": "$.a[?"}}', "_stream.events.text:"),
        ('{"events": {"text": 1}}', "_stream.events.text:"),
        ('{"events": {"txt": "$.a"}}', "_stream.events.txt:"),
        ('{"events": {"text": "$.a"}, "framing": "csv"}', "_stream.framing:"),
        ('{"events": {"text": "$.a"}, "framing": "text"}', "_stream.events:"),
        ('{"events": {"text": "$.a"}, "mode": "both"}', "_stream.mode:"),
        ('{"events": {"text": "$.a"}, "match": {"fields": 1}}', "_stream.match.fields:"),
        ('{"events": {"text": "$.a"}, "match": {"text": 1}}', "_stream.match.text:"),
        ('{"events": {"text": "$.a"}, "terminator": {"eof_ok": "yes"}}', "_stream.terminator.eof_ok:"),
        ('{"events": {"text": "$.a"}, "terminator": {"eof": true}}', "_stream.terminator.eof:"),
        ('{"events": {"text": "$.a"}, "enable": {"body": []}}', "_stream.enable.body:"),
        ('{"events": {"text": "$.a"}, "enable": {"headers": {"a": 1}}}', "_stream.enable.headers:"),
        ('{"events": {"text": "$.a"}, "enable": {"url": {"replace": ["a"]}}}', "_stream.enable.url.replace:"),
        ('{"preset": "anthropic/v1/messages", "terminator": {"eof_ok": true}}', "_stream.terminator:"),
        ('{"preset": "anthropic/v1/messages", "mode": "delta"}', "_stream.mode:"),
        ('{"preset": "anthropic/v1/messages", "payload": {}}', "_stream.payload:"),
        ('{"preset": "sagemaker/invocations", "payload": {}}', "_stream.payload.events:"),
        ('{"events": {"text": "$.a"}, "payload": {}}', "_stream.payload:"),
        ('{"preset": "sagemaker/invocations", "events": {"text": "$.a"}, "payload": {}}', "_stream.payload:"),
    ],
)
def test_what_is_wrong_is_named(text: str, field: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read_stream_spec(text)
    assert caught.value.reason.startswith(field), caught.value.reason


names = st.sampled_from(["a", "b", "c", "x y", "0"])
documents = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4),
    max_leaves=15,
)
steps = st.one_of(
    st.sampled_from([".a", ".b", ".c"]), names.map(lambda name: f"['{name}']"), st.integers(0, 3).map("[{}]".format)
)


@given(st.lists(documents, max_size=3) | st.dictionaries(names, documents, max_size=4), st.lists(steps, max_size=4))
def test_plain_paths_select_what_the_library_selects(document: Any, path: list[str]) -> None:
    text = "$" + "".join(path)
    assert compile_path(text).is_definite
    assert compile_path(text).select(document) == jsonpath.findall(text, document, strict=True)


@pytest.mark.parametrize("path", ["$..a", "$.a[*]", "$.a[?@.b == 1]", "$.a[0,1]", "$['a','b'].c"])
def test_other_paths_go_to_the_library(path: str) -> None:
    assert not compile_path(path).is_definite
    document = {"a": [{"b": 1}, {"b": 2}]}
    assert compile_path(path).select(document) == jsonpath.findall(path, document, strict=True)
    assert compile_path(path).select('{"a": [{"b": 1}]}') == []


def test_a_regular_expression_in_a_path_cannot_hang() -> None:
    path = compile_path("$.a[?search(@.b, '(x+)+$')]")
    assert path.select({"a": [{"b": "x" * 5000 + "y"}, {"b": "x"}]}) == [{"b": "x"}]


def test_paths_that_take_too_much_work_for_their_events_end_the_stream_after_what_was_read() -> None:
    text = spec_text(framing="ndjson", events={"text": "$.t", "usage": "$..*..*..*..*"})
    deep = b'{"t":"b","x":' + b"[" * 60 + b"]" * 60 + b"}\n"
    chunks, outcome = played(text, b'{"t":"a"}\n' * 3 + deep)
    assert [chunk.text for chunk in chunks] == ["a", "a", "a", "b"]
    assert isinstance(outcome, UpstreamError)
    assert (
        outcome.reason.startswith("Reading events by the JSONPaths of _stream takes more than")
        and outcome.status == 424
    )


def test_a_long_stream_has_work_for_each_of_its_events() -> None:
    text = spec_text(framing="ndjson", events={"text": "$..t"})
    chunks, _ = played(text, b'{"choices":[{"delta":{"t":"a","role":"assistant","x":[{},{},{}]}}]}\n' * 20_000)
    assert len(chunks) == 20_000
