"""The decoder's contract: chunks as events come, one outcome, an error where an event cannot be read."""

import json
from collections.abc import Callable, Sequence

import pytest

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, ToolCall, to_chunk_list
from opensearch_ml_stream.connectors.conversation.answer import whole_calls
from opensearch_ml_stream.connectors.decoding.contract import Framing, Outcome
from opensearch_ml_stream.connectors.decoding.decoder import MAX_KEPT_ARGUMENTS, Decoder, FastPathDecoder
from opensearch_ml_stream.connectors.decoding.json_array import JSONArrayFraming
from opensearch_ml_stream.connectors.decoding.ndjson import NDJSONFraming
from opensearch_ml_stream.connectors.decoding.sse import SSEFraming
from opensearch_ml_stream.connectors.errors import StreamTruncated, UnreadableEvent, UpstreamError
from opensearch_ml_stream.connectors.event import Event
from opensearch_ml_stream.connectors.providers.anthropic import Anthropic
from opensearch_ml_stream.connectors.providers.openai_chat import OPENAI_CHAT, OpenAIChat

AnyDecoder = Decoder | FastPathDecoder
DONE = b"data: [DONE]\n\n"
FINISH = b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n'


class Words:
    """Reads the word of each line of JSON; `null` ends the stream, and so does the end of the body after a word."""

    def __init__(self) -> None:
        self.words = 0

    def read(self, event: Event, chunks: list[Chunk]) -> Outcome | None:
        word = json.loads(event.data)["word"]
        if word is None:
            return Ending(native_finish_reason="null")
        chunks.append(Chunk(word))
        self.words += 1
        return None

    def end_of_input(self) -> Outcome:
        return Ending(native_finish_reason=f"the end after {self.words}")


def decoder_of(framing: Callable[[], Framing] = NDJSONFraming) -> Decoder:
    return Decoder(framing(), Words())


def slow() -> Decoder:
    return Decoder(SSEFraming(), OpenAIChat())


every_decoder = pytest.mark.parametrize("new_decoder", [slow, OPENAI_CHAT.decoder], ids=["slow", "fast"])
however_read = pytest.mark.parametrize("in_one_read", [True, False])


def chat(text: str) -> bytes:
    return f'data: {{"choices":[{{"delta":{{"content":"{text}"}}}}]}}\n\n'.encode()


def feed(decoder: AnyDecoder, events: Sequence[bytes], in_one_read: bool) -> str:
    """The text of the events, which come in one read or in a read each."""
    reads = [b"".join(events)] if in_one_read else events
    return "".join(chunk.text for read in reads for chunk in to_chunk_list(decoder.feed(read)))


# Events that cannot be read


@however_read
@every_decoder
@pytest.mark.parametrize(
    "data",
    ["{broken", "not JSON", '{"choices":7}', '{"choices":[{"delta":{"content":{"text":"x"}}}]}', "[1]", "7", '"word"'],
)
def test_an_event_that_cannot_be_read_is_an_error_after_the_text_before_it(
    new_decoder: Callable[[], AnyDecoder], data: str, in_one_read: bool
) -> None:
    unreadable = f"data: {data}\n\n".encode()
    for before in ("", "a", "ab"):
        decoder = new_decoder()
        events = [*map(chat, before), unreadable, chat("not this"), DONE]
        assert feed(decoder, events, in_one_read) == before
        assert type(decoder.outcome) is UnreadableEvent
        assert "not of the form" in decoder.outcome.reason
        assert decoder.chunk_count == len(before)


@however_read
@every_decoder
@pytest.mark.parametrize(
    "nothing",
    [
        "data:", "data", "data: ", "data: ping", "data: [heartbeat]", "data: [DONE]", "data: Keep-Alive", "data: null",
        "data: {}", "data: []", "event: ping\ndata: 1764200000", "event: keep_alive\ndata: still here", ": ping",
        "event: ping", "id: 7\nretry: 10",
    ],
)  # fmt: skip
def test_an_event_that_says_nothing_is_passed_over(
    new_decoder: Callable[[], AnyDecoder], nothing: str, in_one_read: bool
) -> None:
    decoder = Decoder(SSEFraming(), Anthropic()) if nothing == "data: [DONE]" else new_decoder()
    event = f"{nothing}\n\n".encode()
    if nothing == "data: [DONE]":
        texts, end = [anthropic("a"), event, anthropic("b")], b'data: {"type":"message_stop"}\n\n'
    else:
        texts, end = [chat("a"), event, event, chat("b"), event], DONE
    assert feed(decoder, [event, *texts, end], in_one_read) == "ab"
    assert isinstance(decoder.outcome, Ending)


def anthropic(text: str) -> bytes:
    delta = f'{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{text}"}}}}'
    return f"data: {delta}\n\n".encode()


@every_decoder
def test_words_that_keep_a_connection_open_are_text_in_a_text(new_decoder: Callable[[], AnyDecoder]) -> None:
    assert feed(new_decoder(), [chat("ping"), chat("[DONE]"), DONE], in_one_read=False) == "ping[DONE]"


@however_read
@every_decoder
def test_nothing_of_the_response_is_missing_in_what_follows_the_finish_reason(
    new_decoder: Callable[[], AnyDecoder], in_one_read: bool
) -> None:
    decoder = new_decoder()
    assert feed(decoder, [chat("a"), FINISH, b"data: {broken\n\n", DONE], in_one_read) == "a"
    assert isinstance(decoder.outcome, Ending)
    assert decoder.outcome.finish_reason == "stop"


@pytest.mark.parametrize(
    "error", ["event: error\ndata: out of memory", 'data: {"error":{"message":"out of memory"}}',
              'data: {"error":"out of memory"}'],
)  # fmt: skip
def test_an_error_of_another_form_is_the_providers_own_words(error: str) -> None:
    decoder = Decoder(SSEFraming(), Anthropic())
    assert feed(decoder, [anthropic("a"), f"{error}\n\n".encode()], in_one_read=True) == "a"
    assert isinstance(decoder.outcome, UpstreamError)
    assert decoder.outcome.reason == "Error from remote service: out of memory"


@pytest.mark.parametrize("error", [ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError])
def test_an_event_of_any_wrong_shape_is_an_error(error: type[Exception]) -> None:
    class Shapes(Words):
        def read(self, event: Event, chunks: list[Chunk]) -> Outcome | None:
            if b"7" in event.data:
                raise error
            return super().read(event, chunks)

    decoder = Decoder(NDJSONFraming(), Shapes())
    assert decoder.feed(b'{"word":"a"}\n{"word":7}\n{"word":"b"}\n') == [Chunk("a")]
    assert type(decoder.outcome) is UnreadableEvent


# The outcome


def test_the_outcome_comes_with_the_event_that_ends_the_stream_and_nothing_after_it() -> None:
    decoder = decoder_of()
    assert decoder.feed(b'{"word":"a"}\n') == [Chunk("a")]
    assert decoder.outcome is None
    assert decoder.feed(b'{"word":"b"}\n{"word":null}\n{"word":"c"}\n') == [Chunk("b")]
    outcome = decoder.outcome
    assert outcome == Ending(native_finish_reason="null")
    assert decoder.feed(b'{"word":"d"}\n') == []
    assert decoder.close() == []
    assert decoder.outcome is outcome
    assert decoder.chunk_count == 2


def test_the_end_of_the_body_is_the_providers_to_judge() -> None:
    decoder = decoder_of()
    decoder.feed(b'{"word":"a"}\n')
    assert decoder.close() == []
    assert decoder.outcome == Ending(native_finish_reason="the end after 1")


def test_an_event_that_ends_with_the_body_counts() -> None:
    decoder = decoder_of()
    decoder.feed(b'{"word":"a"}\n{"word":"b"}')
    assert decoder.close() == [Chunk("b")]
    assert decoder.outcome == Ending(native_finish_reason="the end after 2")
    assert decoder.chunk_count == 2


def test_a_body_that_ends_within_an_event_is_truncated_whatever_the_provider_says() -> None:
    decoder = decoder_of()
    decoder.feed(b'{"word":"a"}\n{"word":')
    assert decoder.close() == []
    assert isinstance(decoder.outcome, StreamTruncated)
    assert "the end of an event" in decoder.outcome.reason


def test_an_error_of_the_framing_is_the_outcome_after_the_events_before_it() -> None:
    decoder = decoder_of(JSONArrayFraming)
    assert decoder.feed(b'[{"word":"a"},{"word":"b"}] x') == [Chunk("a"), Chunk("b")]
    assert isinstance(decoder.outcome, UpstreamError)
    assert "not a JSON array" in decoder.outcome.reason


def test_the_end_of_the_stream_counts_before_an_error_of_the_framing() -> None:
    decoder = decoder_of(JSONArrayFraming)
    assert decoder.feed(b'[{"word":"a"},{"word":null}] x') == [Chunk("a")]
    assert decoder.outcome == Ending(native_finish_reason="null")


def test_a_framing_that_ends_within_an_event_decides_before_the_provider() -> None:
    decoder = decoder_of(JSONArrayFraming)
    decoder.feed(b'[{"word":"a"},')
    decoder.close()
    assert isinstance(decoder.outcome, StreamTruncated)


# Calls at the end


def called(*fragments: str, finish: str | None = None) -> bytes:
    """The events of a call of which each has a fragment of its arguments, and the terminator."""
    deltas = [{"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f"}}]}]
    deltas += [{"tool_calls": [{"index": 0, "function": {"arguments": text}}]} for text in fragments]
    choices = [*({"delta": delta} for delta in deltas), {"delta": {}, "finish_reason": finish}]
    return b"".join(b"data: %b\n\n" % json.dumps({"choices": [choice]}).encode() for choice in choices) + DONE


@every_decoder
@pytest.mark.parametrize("in_text", [b"", chat("I look. ") * 3])
@pytest.mark.parametrize(
    ("native", "reason"),
    [("stop", "tool_calls"), ("COMPLETE", "tool_calls"), (None, "tool_calls"), ("length", "length"),
     ("content_filter", "content_filter"), ("error", "error")],
)  # fmt: skip
def test_an_answer_with_calls_asks_for_them_where_its_provider_says_stop(
    new_decoder: Callable[[], AnyDecoder], in_text: bytes, native: str | None, reason: str
) -> None:
    decoder = new_decoder()
    decoder.feed(in_text + called("{}", finish=native))
    assert decoder.outcome == Ending(reason, native)


@every_decoder
@pytest.mark.parametrize("fragments", [[], ["{"], ['{"a":', '"b'], ['{"a":1}', "{"]])
def test_calls_that_are_not_whole_at_an_end_without_a_reason_are_an_answer_that_was_cut_off(
    new_decoder: Callable[[], AnyDecoder], fragments: list[str]
) -> None:
    decoder = new_decoder()
    decoder.feed(called(*fragments))
    assert isinstance(decoder.outcome, StreamTruncated)
    decoder = new_decoder()
    decoder.feed(called(*fragments, finish="length"))
    assert decoder.outcome == Ending("length", "length")


def test_of_calls_with_one_id_the_first_has_it() -> None:
    calls = [{"index": place, "id": "c", "function": {"name": "f", "arguments": "{}"}} for place in (0, 1)]
    decoder, events = slow(), [{"choices": [{"delta": {"tool_calls": some}}]} for some in (calls[:1], calls)]
    said = [decoder.feed(b"data: %b\n\n" % json.dumps(event).encode()) for event in events]
    assert [[call.id for call in chunk.tool_calls] for chunks in said for chunk in chunks] == [["c"], ["c", None]]
    assert [call.id for call in whole_calls([ToolCall(index, "c", "f") for index in (0, 1)])] == ["c", None]


def test_arguments_that_are_not_quite_json_are_whole() -> None:
    decoder = slow()
    decoder.feed(called('{"a":"\\ud83d",', '"b":NaN}'))
    assert decoder.outcome == Ending("tool_calls")


def test_the_text_that_a_free_form_tool_is_called_with_may_end_anywhere() -> None:
    class Calls(Words):
        def read(self, event: Event, chunks: list[Chunk]) -> Outcome | None:
            chunks.append(Chunk(tool_calls=(ToolCall(0, "c", "sql", "SELECT {", is_text=True),)))
            chunks.append(Chunk(tool_calls=(ToolCall(0, arguments=" 1"),)))
            return Ending()

    decoder = Decoder(NDJSONFraming(), Calls())
    decoder.feed(b"{}\n")
    assert decoder.outcome == Ending("tool_calls")


def test_arguments_of_more_characters_than_are_kept_are_taken_for_whole() -> None:
    decoder = slow()
    decoder.feed(called(*["x" * 500_000] * (MAX_KEPT_ARGUMENTS // 500_000 + 1)))
    assert decoder.outcome == Ending("tool_calls")
