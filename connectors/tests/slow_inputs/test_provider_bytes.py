"""Search for slow provider streams: every framing, every dialect, events of all kinds.

A provider's bytes come in reads; between two reads the event loop does other work. So it is one read, of 64 KiB at
most, that may take no more than 50 ms (a last one parses an event of up to 4 MiB), not the whole stream.
"""

import gc
import json
import struct
import time
import tracemalloc
from base64 import b64encode
from zlib import crc32

import pytest

from opensearch_ml_stream.connectors.chunks import Chunk, to_chunk_list
from opensearch_ml_stream.connectors.decoding import event_fields
from opensearch_ml_stream.connectors.decoding.contract import MAX_EVENT_BYTES
from opensearch_ml_stream.connectors.decoding.decoder import Decoder, FastPathDecoder
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.event import Event
from opensearch_ml_stream.connectors.known_providers import SHIPPED
from opensearch_ml_stream.connectors.providers.openai_chat import ToolCalls
from opensearch_ml_stream.connectors.stream_parameter import read_stream_spec
from opensearch_ml_stream.connectors.stream_spec import StreamSpec
from opensearch_ml_stream.connectors.unstreamed_response import non_stream_response
from opensearch_ml_stream.connectors.wire_format import NDJSON, SSE
from tests.slow_inputs.derivations import Grammar
from tests.slow_inputs.search import SEARCH_SECONDS, Subject, search

pytestmark = pytest.mark.slow

READ_BYTES = 64 * 1024

_EVENTS: Grammar = {
    "stream": ["<event>", "<stream><stream>"],
    "event": ["<line>", "data: <json>\n\n", "data:<json>\r\n", "<json>\n", "[<objects>]", "<objects>",
              "event: <name>\n", "data:\n", ":\n", "\r", "\n", "data: [DONE]\n\n", "{}", "[", "]", '"', "\\", "\ufeff"],
    "line": ["<char>", "<line><char>"],
    "objects": ["<object>", "<objects>,<objects>"],
    "object": ["{}", "{<members>}", "<known>"],
    "json": ["<object>", "[]", "[<items>]", "{<members>}", '"<chars>"', "1", "-1", "<digits>", "1e400", "null", "true"],
    "not_json": ["NaN", "-Infinity", '"<chars>\n<chars>"', '"<chars>\udcff<chars>"'],
    "items": ["<json>", "<not_json>", "<items>,<items>"],
    "members": ['"<name>":<json>', '"<name>":<not_json>', "<members>,<members>"],
    "digits": ["7", "<digits>1"],
    "chars": ["", "<chars><char>"],
    "char": ["a", "é", "😀", "\\n", '\\"', "\\\\", "\\ud83d", "\\ude00", "\x00", "{", "[", ",", "~probe~", "\ufffd"],
    "name": ["type", "choices", "delta", "content", "tool_calls", "index", "id", "text", "usage", "error", "message",
             "output_index", "contentBlockIndex", "candidates", "parts", "done", "event_type", "outputs", "data",
             "text_output", "token", "role", "finish_reason", "function", "name", "arguments", "<chars>"],
    "known": [
        '{"choices":[{"index":0,"delta":{"content":"<chars>"}}]}',
        '{"choices":[{"delta":{"content":<json>,"tool_calls":[<calls>]},"finish_reason":<json>}],"usage":<json>}',
        '{"choices":[{"text":"<chars>"}]}',
        '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"<chars>"}}',
        '{"type":"content_block_start","index":<json>,"content_block":{"type":"tool_use","id":<json>,"name":<json>}}',
        '{"type":"message_delta","delta":<json>,"usage":<json>}',
        '{"type":"response.output_item.added","output_index":<json>,"item":{"type":"function_call","call_id":<json>}}',
        '{"type":"response.output_text.delta","delta":"<chars>"}',
        '{"type":"tool-call-start","index":<json>,"delta":{"message":{"tool_calls":{"id":"a","function":<json>}}}}',
        '{"candidates":[{"content":{"parts":[<objects>]},"finishReason":<json>}],"usageMetadata":<json>}',
        '{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":<json>}}]}}]}',
        '{"message":{"content":"<chars>","tool_calls":[<calls>]},"done":false}',
        '{"event_type":"tool-calls-generation","tool_calls":[<calls>]}',
        '{"outputs":[{"name":"text","datatype":"BYTES","data":<json>}]}',
        '{"event_type":"step.start","index":<json>,"step":{"type":"function_call","name":"f","arguments":<json>}}',
        '{"event_type":"step.delta","index":<json>,"delta":{"type":"arguments_delta","arguments":"<chars>"}}',
        '{"event_type":"step.start","index":0,"step":{"type":"model_output","content":[<objects>]}}',
        '{"output":{"choices":[{"message":{"content":<json>,"tool_calls":[<calls>]},"finish_reason":<json>}]}}',
        '{"results":[{"generated_text":"<chars>","stop_reason":<json>}]}',
        '{"response":<json>,"tool_calls":[<calls>],"usage":<json>}',
        '{"text":"<chars>"}', '{"error":<json>}', '{"token":{"text":"<chars>"}}', '{"outputText":"<chars>"}',
    ],
    "calls": ["<call>", "<calls>,<calls>"],
    "call": ['{"index":0,"id":"<digits>","function":{"name":"f","arguments":"<chars>"}}', "<json>"],
}  # fmt: skip

_CUSTOM = read_stream_spec(json.dumps({
    "framing": "ndjson", "events": {"text": "$.text", "tool_calls": "$.message.tool_calls", "error": "$.error"},
    "mode": "cumulative",
}))  # fmt: skip
_SPECS = {spec.name: spec for spec in (*SHIPPED.presets.values(), _CUSTOM)}


def _frame(payload: bytes, name: bytes) -> bytes:
    headers = b"\x0b:event-type\x07" + struct.pack(">H", len(name)) + name
    prelude = struct.pack(">II", len(headers) + len(payload) + 16, len(headers))
    frame = prelude + struct.pack(">I", crc32(prelude)) + headers + payload
    return frame + struct.pack(">I", crc32(frame))


def _framed(data: bytes) -> bytes:
    """Return the lines of a stream as frames of AWS: as they are, and as Bedrock's InvokeModel has them."""
    lines = [line for line in data.split(b"\n") if line][:500]
    chunks = [_frame(b'{"bytes":"%b"}' % b64encode(line), b"chunk") for line in lines]
    return b"".join([_frame(line + b"\n", b"PayloadPart") for line in lines] + chunks)


class _Slow(Exception):
    """A read took too long."""


def _decode(spec: StreamSpec, data: bytes) -> UpstreamError | None:
    """Decode a stream in reads, and encode what comes of it; _Slow for a read of more than 50 ms."""
    decoder: Decoder | FastPathDecoder = spec.decoder()
    for start in range(0, len(data), READ_BYTES):
        began = time.thread_time()
        chunks = decoder.feed(data[start : start + READ_BYTES])
        NDJSON.chunks(chunks)
        if time.thread_time() - began > 0.05:
            raise _Slow(f"{spec.name}: {data[:100]!r}, {len(data)} bytes")
        if decoder.outcome is not None:
            break
    SSE.chunks(to_chunk_list(decoder.close()))
    non_stream_response(data[:READ_BYTES], "application/json")
    return decoder.outcome if isinstance(decoder.outcome, UpstreamError) else None


@pytest.mark.parametrize("name", sorted(_SPECS))
def test_no_read_of_a_provider_takes_more_than_its_time(name: str) -> None:
    spec = _SPECS[name]

    def decode(text: str) -> None:
        data = text.encode("utf-8", "surrogatepass")
        _decode(spec, _framed(data) if "bedrock" in name or "sagemaker" in name else data)

    finding = search(Subject(name, _EVENTS, ("stream",), decode), SEARCH_SECONDS / 3)
    assert finding is None, str(finding)


_MIB = 1024 * 1024
_BEGIN = b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n'
_CALL = b'{"index":0,"id":"%d","function":{"name":"a"}}'


def _times(piece: bytes, size: int = _MIB) -> bytes:
    return piece * (size // len(piece))


_STREAMS: dict[str, tuple[str, bytes]] = {
    "events of nothing": ("openai/v1/chat/completions", _times(b"data:{}\n\n")),
    "lines of nothing": ("openai/v1/chat/completions", _times(b"data:\n")),
    "events that say nothing": ("dashscope/generation", _times(b"data: [DONE]\n\n")),
    "comments": ("openai/v1/chat/completions", _times(b":\n")),
    "returns": ("openai/v1/chat/completions", _times(b"\r")),
    "a tool call in each event": (
        "openai/v1/chat/completions",
        b"".join(b'data:{"choices":[{"delta":{"tool_calls":[' + _CALL % n + b"]}}]}\n\n" for n in range(12_000)),
    ),
    "tool calls in one event": (
        "openai/v1/chat/completions",
        b'data:{"choices":[{"delta":{"tool_calls":[' + b",".join(_CALL % n for n in range(2_000)) + b"]}}]}\n\n",
    ),
    "an event of arrays": ("openai/v1/chat/completions", b'data:{"a":[' + _times(b"[],", 4 * _MIB) + b"0]}\n\n"),
    "an event of objects": ("openai/v1/chat/completions", b'data:{"a":[' + _times(b'{"":0},', 3 * _MIB) + b"0]}\n\n"),
    "an event of text": (
        "openai/v1/chat/completions", _BEGIN.replace(b"a", _times("😀é".encode(), 4 * _MIB - 100)) + _BEGIN,
    ),
    "an event of escapes": (
        "openai/v1/chat/completions", _BEGIN.replace(b'"a"', b'"' + _times(b"\\n", 3 * _MIB) + b'"'),
    ),
    "an event of escapes and half a pair": (
        "openai/v1/chat/completions", _BEGIN + _BEGIN.replace(b'"a"', b'"' + _times(b"\\n", 3 * _MIB) + b'\\ud83d"'),
    ),
    "an event of halves": (
        "openai/v1/chat/completions", _BEGIN + _BEGIN.replace(b'"a"', b'"' + _times(b"\\ud83d", 3 * _MIB) + b'"'),
    ),
    **{
        f"an event of {name}": ("openai/v1/chat/completions", _BEGIN + _BEGIN.replace(b'"a"', b'"' + text + b'"'))
        for name, text in {
            "bytes that are no UTF-8": _times(b"\xff", 3 * _MIB),
            "line breaks within a string": _times(b"a\r", 3 * _MIB),
            "escaped quotes and half a pair": _times(rb"\"", 3 * _MIB) + rb"\ud83d",
        }.items()
    },
    "an event of constants": ("openai/v1/chat/completions", b'data:{"a":[' + _times(b"NaN,", 600_000) + b"0]}\n\n"),
    "an array of nothing": ("gemini/v1beta/generatecontent/json-array", b"[" + _times(b"{},") + b"{}]"),
    "an array that is deep": ("gemini/v1beta/generatecontent/json-array", b"[" + _times(b"{")),
    "an array of arrays": ("gemini/v1beta/generatecontent/json-array", b'[{"a":[' + _times(b"[],")),
    "an array of strings": ("gemini/v1beta/generatecontent/json-array", b'[{"a":[' + _times(b'"",')),
    "parts in one event": (
        "gemini/v1beta/generatecontent", b'data:{"candidates":[{"content":{"parts":[' + _times(b"{},") + b"{}]}}]}\n\n",
    ),
    "lines of objects": ("ollama/api/chat", _times(b'{"done":0}\n')),
    "frames of nothing": ("bedrock/invoke", _times(_frame(b"", b""))),
    "frames of a byte": ("sagemaker/invocations", _times(_frame(b"a", b"PayloadPart"))),
    "blanks before anything": ("sagemaker/invocations", _times(_frame(b" ", b"PayloadPart"))),
}  # fmt: skip


@pytest.mark.parametrize("name", _STREAMS)
def test_a_stream_of_one_kind_holds_the_loop_no_longer_than_its_largest_event_may(name: str) -> None:
    preset, data = _STREAMS[name]
    gc.collect()
    gc.freeze()  # what other tests have left is not the stream's
    try:
        longest = min(_longest_read(preset, data) for _ in range(2))
    finally:
        gc.unfreeze()
    assert longest < 0.05 * (MAX_EVENT_BYTES // _MIB)  # for each started MiB; measured are up to 50 ms in all


def _longest_read(preset: str, data: bytes) -> float:
    decoder = SHIPPED.presets[preset].decoder()
    longest = 0.0
    for start in range(0, len(data), READ_BYTES):
        began = time.thread_time()
        decoder.feed(data[start : start + READ_BYTES])
        longest = max(longest, time.thread_time() - began)
    return longest


def test_an_event_that_does_not_end_costs_memory_as_it_counts() -> None:
    tracemalloc.start()
    try:
        decoder = SHIPPED.presets["openai/v1/chat/completions"].decoder()
        for _ in range(100):
            decoder.feed(b"data:\n" * 10_000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert isinstance(decoder.outcome, UpstreamError)
    assert peak < 4 * MAX_EVENT_BYTES


@pytest.mark.parametrize("name", sorted(_SPECS))
@pytest.mark.parametrize("levels", [300, 980, 5_000])
def test_an_event_that_is_deep_ends_no_stream_without_an_outcome(name: str, levels: int) -> None:
    deep = b"[" * levels + b"]" * levels
    for event in (
        b'{"type":"error","error":{"type":%b,"message":%b}}', b'{"error":%b,"error_type":%b}', b'{"outputs":%b,"a":%b}',
        b'{"choices":[{"delta":{"tool_calls":[{"function":{"name":"f","arguments":%b}}],"content":%b}}]}',
    ):  # fmt: skip
        data = event % (deep, deep)
        decoder = _SPECS[name].decoder()
        for piece in (b"data: %b\n\n" % data, _framed(data), b"[%b]" % data, data + b"\n"):
            to_chunk_list(decoder.feed(piece))
        to_chunk_list(decoder.close())
        assert decoder.outcome is not None


def test_a_stream_may_have_so_many_tool_calls() -> None:
    calls = ToolCalls()
    for number in range(event_fields.MAX_TOOL_CALLS):
        function = {"name": "f"}
        (call,) = calls.read_all([{"index": 0, "id": str(number), "function": function}])
        assert call.index == number
    with pytest.raises(ValueError, match="too many tool calls"):
        calls.read_all([{"index": 0, "id": "one more", "function": {"name": "f"}}])


def test_names_and_numbers_of_a_provider_are_not_kept_without_end() -> None:
    kinds = {
        "bedrock/converse": '{"contentBlockStart":{"contentBlockIndex":"%s","start":{"toolUse":{"toolUseId":"a",'
        '"name":"b"}}}}',
        "cohere/v2/chat": '{"type":"tool-call-start","index":"%s","delta":{"message":{"tool_calls":'
        '{"id":"a","function":{}}}}}',
    }
    for name, event in kinds.items():
        provider = SHIPPED.presets[name].reader()
        chunks: list[Chunk] = []
        with pytest.raises(TypeError):
            provider.read(Event("", (event % ("x" * 1_000)).encode()), chunks)
        provider.read(Event("", (event % "0").replace('"0"', "0").encode()), chunks)
        assert len(chunks) == 1


@pytest.mark.parametrize(
    ("name", "event"),
    [
        ("openai/v1/responses", '{"type":"response.output_text.delta","output_index":"%s","delta":"a"}'),
        ("anthropic/v1/messages",
         '{"type":"content_block_start","index":"%s","content_block":{"type":"tool_use","id":"a","name":"b"}}'),
    ],
)  # fmt: skip
def test_an_index_that_is_no_number_is_not_kept(name: str, event: str) -> None:
    provider = SHIPPED.presets[name].reader()
    chunks: list[Chunk] = []
    tracemalloc.start()
    for number in range(50):
        provider.read(Event("", (event % (f"{number:02}" * 50_000)).encode()), chunks)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(chunks) >= 50
    assert kept < 1_000_000  # bytes, of the 5 million that came
