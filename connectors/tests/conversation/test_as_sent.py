"""Events as they were sent: the first waits for the second, and none has a credential in it."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import orjson

from opensearch_ml_stream.connectors.chunks import Chunk, TextRun, to_chunk_list
from opensearch_ml_stream.connectors.conversation.as_sent import DecoderAsSent, Redact
from opensearch_ml_stream.connectors.conversation.dialects.openai_as_sent import ChooseChoices
from opensearch_ml_stream.connectors.decoding.contract import StreamDecoder
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.event import Event
from opensearch_ml_stream.connectors.providers.openai_chat import OPENAI_CHAT


def decoder(redact: Redact = bytes) -> StreamDecoder:
    return OPENAI_CHAT.decoder_with(partial(DecoderAsSent, ChooseChoices(), redact))


def event(delta: dict[str, Any], **more: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": None, **more}
    return b"data: " + orjson.dumps({"id": "c", "choices": [choice]}) + b"\n\n"


def events_in(chunks: Sequence[Chunk]) -> list[bool]:
    return [chunk.event is not None for chunk in chunks]


ROLE = event({"role": "assistant", "content": ""})


def test_a_first_event_that_says_nothing_comes_with_the_second() -> None:
    stream = decoder()
    assert stream.feed(ROLE) == []
    chunks = to_chunk_list(stream.feed(event({"content": "a"})))
    assert (events_in(chunks), [chunk.text for chunk in chunks]) == ([True, True], ["", "a"])
    assert stream.feed(event({"content": "b"})) == [Chunk("b")]
    assert isinstance(stream.feed(event({"content": "c"})), TextRun)


def test_a_first_event_that_says_something_does_not_wait() -> None:
    assert events_in(to_chunk_list(decoder().feed(event({"content": "a"})))) == [True]


def test_no_later_event_waits() -> None:
    stream = decoder()
    assert stream.feed(event({}, index=1)) == []
    assert events_in(to_chunk_list(stream.feed(event({}, index=1)))) == [True, True]
    assert events_in(to_chunk_list(stream.feed(event({}, index=1)))) == [True]


def test_a_first_event_comes_with_the_end() -> None:
    stream = decoder()
    stream.feed(ROLE)
    assert events_in(to_chunk_list(stream.feed(event({}, finish_reason="stop")))) == [True, True]
    stream = decoder()
    stream.feed(ROLE)
    assert events_in(to_chunk_list(stream.feed(b"data: [DONE]\n\n"))) == [True]


def test_a_first_event_before_an_error_is_not_given() -> None:
    stream = decoder()
    stream.feed(ROLE)
    assert stream.feed(b'data: {"error":{"message":"no"}}\n\n') == []
    assert isinstance(stream.outcome, UpstreamError)


SECRET = b"sk-very-secret"


def secret_call() -> bytes:
    call = {"index": 0, "id": "1", "function": {"name": "f", "arguments": SECRET.decode()}}
    return event({"tool_calls": [call]})


def test_no_event_that_goes_on_has_a_credential_in_it() -> None:
    stream = decoder(lambda data: data.replace(SECRET, b"***") if SECRET in data else data)
    stream.feed(ROLE)
    (first, call) = to_chunk_list(stream.feed(secret_call()))
    assert first.event is not None
    assert call.event is not None
    function = call.event.payload["choices"][0]["delta"]["tool_calls"][0]["function"]
    assert function == {"name": "f", "arguments": "***"}


def test_the_events_of_a_read_are_searched_as_one() -> None:
    searched: list[bytes] = []

    def note(data: bytes) -> bytes:
        searched.append(data)
        return data

    read = [ROLE, event({"content": "a"}), event({}, finish_reason="stop")]
    decoder(note).feed(b"".join(read))
    assert searched == [b"\n".join([one[len("data: ") : -len("\n\n")] for one in read])]


def test_an_event_that_is_masked_as_a_whole_ends_the_stream() -> None:
    stream = decoder(lambda data: b'"***"' if SECRET in data else data)
    assert to_chunk_list(stream.feed(event({"content": "a"}) + secret_call())) == [
        Chunk("a", event=Event("", event({"content": "a"})[6:-2]))
    ]
    assert isinstance(stream.outcome, UpstreamError)
    assert (stream.is_ending, stream.chunk_count) == (True, 1)
