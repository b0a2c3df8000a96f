"""Streams of OpenAI's interfaces for clients of the same: what they sent can be restored, and text stays fast."""

from collections.abc import Iterable, Iterator
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opensearch_ml_stream.connectors.chunks import Chunk, TextRun, to_chunk_list
from opensearch_ml_stream.connectors.conversation.as_sent import AsSent
from opensearch_ml_stream.connectors.conversation.dialect import OPENAI_CHAT, OPENAI_COMPLETIONS, OPENAI_RESPONSES
from opensearch_ml_stream.connectors.decoding.decoder import Decoder
from opensearch_ml_stream.connectors.decoding.sse import SSEFraming
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.event import Event
from opensearch_ml_stream.connectors.known_providers import SHIPPED
from tests.conversation.sent_streams import decoder_as_sent
from tests.providers.recorded_streams import ALL_STREAMS, STREAMS, Recorded, join_chunks, outcome_fields, play
from tests.providers.recordings.recording_files import RECORDINGS, Recording
from tests.providers.stream_bodies import sse

CHAT = "openai/v1/chat/completions"
_ENVELOPE = ("id", "object", "created", "model", "system_fingerprint")


def _dialect(preset: str) -> str:
    return SHIPPED.dialects[preset].name if preset in SHIPPED.dialects else ""


_STREAMS: tuple[Recorded | Recording, ...] = (*ALL_STREAMS, *RECORDINGS)
OF_OPENAI = [
    pytest.param(stream.data, stream.preset, id=stream.name)
    for stream in _STREAMS
    if _dialect(stream.preset) in (OPENAI_CHAT, OPENAI_COMPLETIONS, OPENAI_RESPONSES)
]
every_stream = pytest.mark.parametrize(("data", "preset"), OF_OPENAI)


def reader_as_sent(preset: str) -> AsSent:
    choose = SHIPPED.dialects[preset].as_sent
    assert choose is not None
    return AsSent(SHIPPED.presets[preset].reader(), choose(True))


def sent(data: bytes) -> Iterator[dict[str, Any]]:
    """The payloads that the provider sent, but for its errors and its terminator."""
    framing = SSEFraming()
    for event in [*framing.feed(data), *framing.close()]:
        if event.data.strip() != b"[DONE]" and event.name != "error":
            yield orjson.loads(event.data)


def restored(chunks: Iterable[Chunk], preset: str) -> Iterator[dict[str, Any]]:
    """The payloads that a client is sent: the provider's, or made of a text."""
    for chunk in chunks:
        if chunk.event is not None:
            yield chunk.event.payload
        else:
            text = (
                {"text": chunk.text} if _dialect(preset) == OPENAI_COMPLETIONS else {"delta": {"content": chunk.text}}
            )
            yield {"choices": [{"index": 0, **text}]}


def put_together(value: Any, more: Any) -> Any:
    """What a client makes of two events: texts and lists go on, another value replaces the one before."""
    if more is None or (isinstance(more, (str, list)) and not more):
        return value
    if isinstance(value, str) and isinstance(more, str) and value != more:
        return value + more
    if isinstance(value, list) and isinstance(more, list) and value != more:
        return value + more
    if isinstance(value, dict) and isinstance(more, dict):
        both = {name: put_together(value.get(name), more.get(name)) for name in {**value, **more}}
        return {name: member for name, member in both.items() if member is not None}
    return more


def accumulated(payloads: Iterable[dict[str, Any]]) -> tuple[Any, dict[int, Any], list[str]]:
    """What the events say outside of choices, in each choice, and all the text of choice 0."""
    outside: Any = {}
    choices: dict[int, Any] = {}
    texts: list[str] = []
    for payload in payloads:
        outside = {**outside, **{name: value for name, value in payload.items() if value is not None}}
        for choice in payload.get("choices") or ():
            index = choice.get("index") or 0
            delta = choice.get("delta") or {}
            content = choice.get("text") or delta.get("content")
            if index == 0 and isinstance(content, str):
                texts.append(content)
                delta = {**delta, "content": None}
            rest = {**choice, "delta": delta, "text": None, "index": index}
            choices[index] = put_together(choices.get(index, {}), rest)
    kept = {name: value for name, value in outside.items() if name not in (*_ENVELOPE, "choices")}
    return kept, choices, texts


@every_stream
def test_what_was_read_is_as_without_it(data: bytes, preset: str) -> None:
    plain_chunks, plain_outcome = play(SHIPPED.presets[preset].decoder(), [data])
    chunks, outcome = play(decoder_as_sent(preset), [data])
    assert join_chunks(chunks) == join_chunks(plain_chunks)
    assert outcome_fields(outcome) == outcome_fields(plain_outcome)


@every_stream
def test_a_client_can_restore_what_the_provider_sent(data: bytes, preset: str) -> None:
    chunks, outcome = play(decoder_as_sent(preset), [data])
    if isinstance(outcome, UpstreamError):
        assert not any(chunk.event is not None and b'"error":{' in chunk.event.data for chunk in chunks)
        return
    assert chunks[0].event
    if _dialect(preset) == OPENAI_RESPONSES:
        assert [chunk.event and chunk.event.payload for chunk in chunks] == list(sent(data))
        return
    outside, choices, texts = accumulated(restored(chunks, preset))
    sent_outside, sent_choices, sent_texts = accumulated(sent(data))
    assert (outside, choices, "".join(texts)) == (sent_outside, sent_choices, "".join(sent_texts))


@every_stream
def test_cuts_change_nothing(data: bytes, preset: str) -> None:
    whole, outcome = play(decoder_as_sent(preset), [data])
    for size in (1, 7, 64, 200, 1000):
        pieces = [data[start : start + size] for start in range(0, len(data), size)]
        chunks, cut_outcome = play(decoder_as_sent(preset), pieces)
        assert (chunks, outcome_fields(cut_outcome)) == (whole, outcome_fields(outcome)), size


def delta(content: str, more: str = "", outside: str = "") -> bytes:
    choice = '{"index":0,"delta":{"content":%s%s},"logprobs":null,"finish_reason":null}'
    choice %= (orjson.dumps(content).decode(), more)
    return f'data: {{"id":"c1","created":1,"model":"m","choices":[{choice}]{outside}}}\n\n'.encode()


def sent_chunk(event: bytes, text: str = "") -> Chunk:
    return Chunk(text, event=Event("", event.removeprefix(b"data: ").strip()))


FIRST = b'data: {"id":"c1","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}\n\n'  # noqa: E501


def test_text_takes_the_fast_path_after_the_first_one() -> None:
    decoder = decoder_as_sent(CHAT)
    assert to_chunk_list(decoder.feed(FIRST + delta("Deep"))) == [sent_chunk(FIRST), sent_chunk(delta("Deep"), "Deep")]
    assert decoder.feed(delta(" sea")) == [Chunk(" sea")]
    assert decoder.feed(delta(" so") + delta(" blue")) == TextRun(b" so\0 blue")


def test_the_text_of_a_first_event_is_in_its_chunk_too() -> None:
    decoder = decoder_as_sent(CHAT)
    assert decoder.feed(delta("Deep")) == [sent_chunk(delta("Deep"), "Deep")]
    assert decoder.feed(delta(" sea")) == [Chunk(" sea")]


@pytest.mark.parametrize(
    "event",
    [
        delta("a", outside=',"usage":{"prompt_tokens":1}'),
        delta("a", ',"reasoning_content":"b"'),
        delta("a", ',"annotations":[{"type":"url_citation"}]'),
        delta("a").replace(b'"logprobs":null', b'"logprobs":{"content":[]}'),
        delta("a").replace(b'"index":0', b'"index":1'),
        delta("a").replace(b'"finish_reason":null', b'"finish_reason":"stop"'),
        delta("", ',"tool_calls":[{"index":0,"id":"1","function":{"name":"f","arguments":""}}]'),
        delta("", ',"refusal":"no"'),
    ],
)
def test_an_event_that_says_more_than_text_is_given_as_it_was_sent(event: bytes) -> None:
    decoder = decoder_as_sent(CHAT)
    decoder.feed(FIRST + delta("Deep"))
    [chunk] = to_chunk_list(decoder.feed(event))
    assert chunk.event == sent_chunk(event).event


@pytest.mark.parametrize(
    "event",
    [
        delta("a", ',"role":"assistant"'),
        delta("a", ',"reasoning_content":null,"tool_calls":[]'),
        delta("a").replace(b'"id":"c1","created":1', b'"id":"c2","created":2'),
        delta("a", outside=',"obfuscation":"x8"'),
    ],
)
def test_what_says_nothing_new_is_left_out(event: bytes) -> None:
    decoder = decoder_as_sent(CHAT)
    decoder.feed(FIRST + delta("Deep", ',"role":"assistant"'))
    assert decoder.feed(event) == [Chunk("a")]
    assert decoder.feed(delta("")) == []


USAGE = b'data: {"id":"c1","choices":[],"usage":{"total_tokens":3}}\n\n'


@pytest.mark.parametrize("finish", [b"", delta("").replace(b'"finish_reason":null', b'"finish_reason":"stop"')])
def test_an_event_of_usage_alone_is_for_those_who_ask(finish: bytes) -> None:
    for wants_usage in (True, False):
        decoder = decoder_as_sent(CHAT, wants_usage=wants_usage)
        decoder.feed(FIRST + delta("a") + finish)
        assert to_chunk_list(decoder.feed(USAGE)) == [sent_chunk(USAGE)] * wants_usage


def test_an_event_given_as_it_was_sent_has_its_padding() -> None:
    decoder = decoder_as_sent(CHAT)
    decoder.feed(FIRST + delta("Deep"))
    for number in range(3):
        assert to_chunk_list(decoder.feed(delta("a", outside=f',"obfuscation":"x{number}"'))) == [Chunk("a")]
    event = delta("", ',"tool_calls":[{"index":0,"id":"1"}]', ',"obfuscation":"yy"')
    [chunk] = to_chunk_list(decoder.feed(event))
    assert chunk.event == sent_chunk(event).event


def test_a_member_that_stays_as_it_was_is_not_repeated() -> None:
    decoder = decoder_as_sent(CHAT)
    tier, other = ',"service_tier":"default"', ',"service_tier":"flex"'
    assert [bool(chunk.event) for chunk in decoder.feed(delta("a", outside=tier))] == [True]  # type: ignore[union-attr]
    assert decoder.feed(delta("b", outside=tier)) == [Chunk("b")]
    assert [bool(chunk.event) for chunk in decoder.feed(delta("c", outside=other))] == [True]  # type: ignore[union-attr]


@pytest.mark.parametrize("left_out", [delta("b"), delta("b", outside=',"tier":1').replace(b'"logprobs":null,', b"")])
def test_a_text_that_says_all_that_the_last_one_given_says_is_left_out(left_out: bytes) -> None:
    first = delta("a", outside=',"tier":1,"once":true')
    decoder = decoder_as_sent(CHAT)
    events = [first, left_out, left_out, left_out, first, left_out]
    chunks = [chunk for event in events for chunk in to_chunk_list(decoder.feed(event))]
    assert [bool(chunk.event) for chunk in chunks] == [True, True, False, False, True, False]


def test_all_events_up_to_the_first_with_a_text_are_given() -> None:
    """Azure's first event has neither id nor model."""
    decoder = decoder_as_sent(CHAT)
    first = b'data: {"id":"","model":"","choices":[],"prompt_filter_results":[]}\n\n'
    assert [bool(chunk.event) for chunk in to_chunk_list(decoder.feed(first + FIRST + delta("a") + delta("b")))] == [
        1,
        1,
        1,
        0,
    ]


def test_neither_the_terminator_nor_an_error_is_given() -> None:
    reader = reader_as_sent(CHAT)
    chunks: list[Chunk] = []
    reader.read(Event("", b'{"choices":[{"delta":{"content":"a"}}]}'), chunks)
    assert isinstance(reader.read(Event("", b'{"error":{"message":"broken"}}'), chunks), UpstreamError)
    reader.read(Event("", b"[DONE]"), chunks)
    assert len(chunks) == 1


@pytest.mark.parametrize(
    "data", [b"{", b"[]", b'{"choices":[1]}', b'{"choices":[{},1]}', b'{"choices":[{"delta":{"content":1}}]}']
)
def test_a_malformed_event_leaves_nothing_behind(data: bytes) -> None:
    chunks: list[Chunk] = []
    with pytest.raises((ValueError, TypeError, AttributeError)):
        reader_as_sent(CHAT).read(Event("", data), chunks)
    assert chunks == []


_texts = st.sampled_from(["a", "", 'b"', "ü", "\\", "stop"])
_events = st.one_of(
    st.builds(delta, _texts),
    st.builds(delta, _texts, st.just(',"reasoning_content":"r"')),
    st.builds(delta, _texts, outside=st.sampled_from([',"tier":1', ',"tier":2', ',"usage":{"total_tokens":1}'])),
    st.builds(delta, _texts, outside=st.sampled_from([',"obfuscation":"a1"', ',"obfuscation":"b"', ',"p":"c"'])),
    st.just(FIRST),
    st.just(b'data: {"choices":[]}\n\n'),
    st.just(b'data: {"choices":[{"index":1,"delta":{"content":"other"}}]}\n\n'),
)


@given(st.lists(_events, max_size=12), st.integers(1, 300))
def test_the_fast_path_says_what_the_slow_one_says(events: list[bytes], size: int) -> None:
    data = b"".join(events) * 2 + b"data: [DONE]\n\n"
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    fast, fast_outcome = play(decoder_as_sent(CHAT), pieces)
    slow, slow_outcome = play(Decoder(SSEFraming(), reader_as_sent(CHAT)), [data])
    assert (fast, outcome_fields(fast_outcome)) == (slow, outcome_fields(slow_outcome))


@pytest.mark.parametrize("name", ["groq-chat", "openai-chat", "workers-ai-chat", "xai-chat"])
def test_recorded_streams_take_the_fast_path(name: str) -> None:
    recorded = STREAMS[name]
    decoder = decoder_as_sent(recorded.preset)
    events = [event + b"\n\n" for event in recorded.data.split(b"\n\n") if event]
    assert any(isinstance(decoder.feed(event), TextRun) for event in events for _ in range(2))


def told(delta: Any, finish: str | None = None, **message: Any) -> dict[str, Any]:
    own = {} if delta is None else {"delta": delta}
    return {"id": "c1", "choices": [{"index": 0, **own, "message": message, "finish_reason": finish}]}


@pytest.mark.parametrize(
    ("event", "delta"),
    [
        (told(None, content="Hi", reasoning_content="Hm"), {"content": "Hi", "reasoning_content": "Hm"}),
        (told({}, "stop", refusal="No"), {"content": None, "refusal": "No"}),
        (told({}, "stop", tool_calls=[{"id": "c", "function": {"name": "f", "arguments": "{}"}}]),
         {"content": None, "tool_calls": [
             {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}),
    ],
)  # fmt: skip
def test_what_a_message_tells_in_place_of_a_delta_is_a_delta(event: dict[str, Any], delta: dict[str, Any]) -> None:
    chunks, _ = play(decoder_as_sent(CHAT), [sse(event, "[DONE]")])
    [chunk] = [chunk for chunk in chunks if chunk.event is not None]
    assert chunk.event is not None
    choice = chunk.event.payload["choices"][0]
    assert (choice["delta"], "message" in choice) == (delta, False)


def test_a_message_beside_a_delta_that_tells_the_same_is_given_as_it_was_sent() -> None:
    events = [told({"content": "Hel"}, content="Hel"), told({"content": "lo"}, "stop", content="Hello")]
    chunks, _ = play(decoder_as_sent(CHAT), [sse(*events, "[DONE]")])
    assert [chunk.event and chunk.event.payload for chunk in chunks] == events


def test_a_usage_of_nothing_after_another_is_not_given() -> None:
    usages = [
        {"id": "c1", "choices": [], "usage": {"prompt_tokens": count, "details": {"a": 0}}} for count in (0, 3, 0)
    ]
    chunks, _ = play(decoder_as_sent(CHAT), [sse(*usages, "[DONE]")])
    assert [chunk.event and chunk.event.payload for chunk in chunks] == usages[:2]
