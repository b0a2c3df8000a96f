"""What a stream begins with may be made ready while its provider is awaited: the stream is the same."""

from collections.abc import Callable

import pytest

from opensearch_ml_stream.connectors.chunks import Chunk, Chunks, Ending, TextRun, ToolCall, Usage
from opensearch_ml_stream.connectors.errors import MLStreamError, UpstreamError
from opensearch_ml_stream.connectors.event import Event
from opensearch_ml_stream.connectors.wire_format import WireFormat
from opensearch_ml_stream.extensions.anthropic_api.protocol.messages_events import MessageEvents
from opensearch_ml_stream.extensions.openai_api.protocol.completions_events import ChatEvents, CompletionsEvents
from opensearch_ml_stream.extensions.openai_api.protocol.envelope import Envelope
from opensearch_ml_stream.extensions.openai_api.protocol.responses_as_sent import ResponsesStream
from opensearch_ml_stream.extensions.openai_api.protocol.responses_items import ResponseObject
from tests.counted_work import steps

ENVELOPE = Envelope("chatcmpl-1f", 1700000000, "m")
FORMATS: dict[str, Callable[[], WireFormat]] = {
    "chat": lambda: ChatEvents(ENVELOPE, wants_usage=True),
    "completions": lambda: CompletionsEvents(ENVELOPE),
    "responses": lambda: ResponsesStream(ResponseObject("t1", 1700000000, "m", {"temperature": 0.5})),
    "messages": lambda: MessageEvents("m", "msg_1"),
}
CALL = Chunk(tool_calls=(ToolCall(0, "c1", "f", "{}"),))
# A fallback model may speak the client's dialect where the first one did not.
SENT = Chunk(event=Event.of({"type": "response.created", "response": {"id": "r"}, "choices": [{"index": 0}]}))
STREAMS: dict[str, list[Chunks]] = {
    "run of texts": [TextRun(b"Hel\0lo"), TextRun(b"!")],
    "text": [[Chunk("Hel")], TextRun(b"lo")],
    "reasoning": [[Chunk(reasoning="hm", signature="s")], TextRun(b"lo")],
    "call": [[CALL], [Chunk("Hello")]],
    "nothing": [],
    "as sent": [[SENT], [Chunk("Hello")], TextRun(b"!")],
}
USAGE = Usage(1, 2)


def whole(wire: WireFormat, reads: list[Chunks], end: Ending | MLStreamError) -> bytes:
    data = b"".join([wire.chunks(read) for read in reads])
    return data + (wire.error(end) if isinstance(end, MLStreamError) else wire.last([], end, {}))


@pytest.mark.parametrize("end", [Ending("stop", usage=USAGE), UpstreamError("broke off")], ids=["ends", "fails"])
@pytest.mark.parametrize("reads", STREAMS.values(), ids=STREAMS)
@pytest.mark.parametrize("new", FORMATS.values(), ids=FORMATS)
def test_a_prepared_stream_is_the_same(
    new: Callable[[], WireFormat], reads: list[Chunks], end: Ending | MLStreamError
) -> None:
    prepared = new()
    prepared.prepare()
    assert whole(prepared, reads, end) == whole(new(), reads, end)


@pytest.mark.parametrize("name", ["chat", "responses", "messages"])
def test_a_first_text_costs_less_where_its_stream_is_prepared(name: str) -> None:
    prepared, other = FORMATS[name](), FORMATS[name]()
    prepared.prepare()
    assert steps(lambda: prepared.chunks([Chunk("Hel")])) < steps(lambda: other.chunks([Chunk("Hel")]))
