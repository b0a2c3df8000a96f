"""Recorded streams of every provider behind every API: the client's SDK reads what the ML route says."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import anthropic
import openai
import pytest
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from opensearch_ml_stream.connectors.chunks import Chunk, Chunks, Ending, Usage
from opensearch_ml_stream.connectors.conversation.dialect import ANTHROPIC, OPENAI_CHAT, OPENAI_RESPONSES
from opensearch_ml_stream.connectors.decoding.contract import Outcome
from opensearch_ml_stream.connectors.decoding.decoder import Decoder, FastPathDecoder
from opensearch_ml_stream.connectors.known_providers import SHIPPED
from opensearch_ml_stream.connectors.wire_format import WireFormat
from opensearch_ml_stream.extensions.anthropic_api.messages_api import MessagesAPI
from opensearch_ml_stream.extensions.openai_api.http.completions_api import ChatAPI
from opensearch_ml_stream.extensions.openai_api.http.responses_api import ResponsesAPI
from tests.conversation.sent_streams import decoder_as_sent
from tests.providers.recorded_streams import ALL_STREAMS, STREAMS, Recorded, join_chunks, play
from tests.providers.recordings.recording_files import RECORDINGS, Recording
from tests.providers.recordings.sdk_readers import MESSAGES, Reading, read_anthropic, read_chat, read_responses

Stream = Recorded | Recording


@dataclass(frozen=True, slots=True, eq=False)
class Client:
    """A client of an API: the dialect it speaks, its SDK, and by which words it says that an answer has ended."""

    dialect: str
    wire: Callable[[], WireFormat]
    read: Callable[[bytes], Reading]
    error: type[Exception]
    ends: dict[str, str]


CHAT = Client(
    OPENAI_CHAT,
    lambda: (
        ChatAPI(lambda: 7)
        .read({"model": "m", "messages": MESSAGES, "stream": True, "stream_options": {"include_usage": True}})
        .wire()
    ),
    read_chat,
    openai.APIError,
    {},
)
RESPONSES = Client(
    OPENAI_RESPONSES,
    lambda: ResponsesAPI(lambda: 7).read({"model": "m", "input": "?", "stream": True}).wire(),
    read_responses,
    openai.APIError,
    {
        "stop": "completed", "tool_calls": "completed", "length": "max_output_tokens",
        "content_filter": "content_filter", "error": "failed",
    },
)  # fmt: skip
ANTHROPICS = Client(
    ANTHROPIC,
    lambda: MessagesAPI(lambda: "1").read({"model": "m", "messages": MESSAGES, "max_tokens": 9}).wire(),
    read_anthropic,
    anthropic.APIStatusError,
    {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "content_filter": "refusal"},
)
CLIENTS = (CHAT, RESPONSES, ANTHROPICS)
FINER = {"stop_sequence", "pause_turn", "model_context_window_exceeded"}  # of Anthropic's, passed to its own clients

# What Anthropic's SDK does not read, in a stream of Anthropic's own either: arguments that are no JSON object.
NO_OBJECT = {"anthropic/tool_input_not_json"}
# The text that a free-form tool is called with, in an object for Anthropic's clients.
FREE_FORM = {"openai/responses_custom_tool"}
# Of arguments that are cut off, Anthropic's SDK leaves out the string that is.
CUT = {"anthropic/second_message_start", "anthropic/tool_input_cut_by_length"}

# Streams that are not as the API of their provider says, or end by a word that it does not have.
NOT_WELL_FORMED = {
    "anthropic-messages", "anthropic/second_message_start", "anthropic/stop_without_a_reason",
    "anthropic/tool_input_cut_by_length", "anthropic/two_messages", "anthropic/usage_only_at_the_end",
    "azure-openai-chat", "databricks-chat", "deepseek-chat", "huggingface/chat_tool_without_reason", "mistral-chat",
    "mistral/thinking", "moonshot/calls_without_index", "open_responses/cut_within_reasoning",
    "openai-responses", "together-chat", "xai/responses_only_completed", "xai/responses_text",
}  # fmt: skip

_EVENTS: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
_ALL: tuple[Stream, ...] = (*ALL_STREAMS, *RECORDINGS)

_PIECE, _WHOLE = 200, 1 << 20
_PIECES = [
    *(pytest.param(stream, _PIECE, id=f"{stream.name} in pieces") for stream in _ALL),
    *(pytest.param(stream, _WHOLE, id=f"{stream.name} at once") for stream in ALL_STREAMS),
]

every_client = pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.dialect)
every_stream = pytest.mark.parametrize("stream", _ALL, ids=lambda stream: str(stream.name))


def replayed(client: Client, decoder: Decoder | FastPathDecoder, data: bytes, size: int) -> tuple[bytes, Outcome]:
    """What a client gets of a stream that comes in pieces of a size, and how it ends."""
    wire, body = client.wire(), b""
    chunks: Chunks = []
    for start in range(0, len(data), size):
        chunks = decoder.feed(data[start : start + size])
        if decoder.outcome is not None:
            break
        body += wire.chunks(chunks) if chunks else b""
    else:
        chunks = decoder.close()
    outcome = decoder.outcome
    assert outcome is not None
    if isinstance(outcome, Ending):
        return body + wire.last(chunks, outcome, {}), outcome
    return body + (wire.chunks(chunks) if chunks else b"") + wire.error(outcome), outcome


def is_failure(client: Client, body: bytes) -> bool:
    """Whether the SDK raises its error, or has a response that failed."""
    try:
        return client.read(body).native == "failed"
    except (client.error, Warning):  # the SDK warns of what it cannot take of the provider's own events
        return True


def value_of(arguments: Any) -> Any:
    """Arguments as JSON, however an SDK has them."""
    try:
        return json.loads(arguments or "{}") if isinstance(arguments, str) else arguments
    except ValueError:
        return arguments


@every_client
@pytest.mark.parametrize(("stream", "size"), _PIECES)
def test_the_clients_sdk_reads_what_the_ml_route_says(client: Client, stream: Stream, size: int) -> None:
    chunks, _ = play(stream.decoder(), [stream.data])
    body, outcome = replayed(client, stream.decoder(), stream.data, size)
    if not isinstance(outcome, Ending) or (outcome.finish_reason == "error" and client is ANTHROPICS):
        assert is_failure(client, body)
        return
    if client is ANTHROPICS and stream.name in NO_OBJECT:
        with pytest.raises(ValueError, match="tool parameter JSON"):
            client.read(body)
        return
    check(client, stream, client.read(body), chunks, outcome)


def check(client: Client, stream: Stream, reading: Reading, chunks: list[Chunk], outcome: Ending) -> None:
    text, reasoning, calls = join_chunks(chunks)
    assert (reading.text, reading.reasoning) == (text, reasoning)
    assert [name for _, name, _ in reading.tools] == [call["name"] or "" for call in calls]
    assert all(call["id"] in (None, "", id) for call, (id, _, _) in zip(calls, reading.tools, strict=True))
    assert len({id for id, _, _ in reading.tools}) == len(calls)
    if client is not ANTHROPICS or stream.name not in CUT:
        is_in_object = client is ANTHROPICS and stream.name in FREE_FORM
        assert [value_of(arguments) for _, _, arguments in reading.tools] == [
            {"input": call["arguments"]} if is_in_object else value_of(call["arguments"]) for call in calls
        ]
    has_refused = any(chunk.refusal for chunk in chunks) and client is not ANTHROPICS
    end = "stop" if has_refused else outcome.finish_reason  # for OpenAI's API a refusal in words is an answer
    assert reading.native in {client.ends.get(end, end), *FINER}
    if outcome.usage is not None or client is ANTHROPICS:
        usage = outcome.usage or Usage()
        assert reading.usage == {"input_tokens": usage.input_tokens or 0, "output_tokens": usage.output_tokens or 0}


@every_stream
def test_the_events_of_responses_are_of_the_types_of_openais_sdk_and_counted(stream: Stream) -> None:
    body, _ = replayed(RESPONSES, stream.decoder(), stream.data, _PIECE)
    payloads = [json.loads(line[6:]) for line in body.splitlines() if line.startswith(b"data: ")]
    for payload in payloads:
        if payload["type"] == "response.failed":  # a provider's own code, which the types need not list: nor OpenAI's
            payload["response"]["error"]["code"] = "server_error"
        _EVENTS.validate_python(payload)
    assert [payload["sequence_number"] for payload in payloads] == list(range(len(payloads)))


def _of_the_clients_dialect() -> list[Any]:
    return [
        pytest.param(client, stream, id=str(stream.name))
        for client in CLIENTS
        for stream in _ALL
        if stream.preset in SHIPPED.dialects and SHIPPED.dialects[stream.preset].name == client.dialect
    ]


@pytest.mark.parametrize(("client", "stream"), _of_the_clients_dialect())
def test_a_stream_of_the_clients_own_dialect_is_read_as_if_it_came_from_the_provider(
    client: Client, stream: Stream
) -> None:
    body, outcome = replayed(client, decoder_as_sent(stream.preset), stream.data, _PIECE)
    if not isinstance(outcome, Ending):
        assert is_failure(client, body)
        return
    if stream.name in NOT_WELL_FORMED:
        chunks, _ = play(stream.decoder(), [stream.data])
        check(client, stream, client.read(body), chunks, outcome)
        return
    try:
        straight = client.read(stream.data)
    except (Warning, LookupError, TypeError, AttributeError, ValueError) as error:  # the SDK does not take it
        with pytest.raises(type(error)):
            client.read(body)
        return
    reading = client.read(body)
    # What the provider says in another place than its API has for it, or not at all, is said where the client looks.
    usage, native = straight.usage or reading.usage, straight.native or reading.native
    assert reading == replace(straight, usage=usage, native=native, model=straight.model or reading.model)


def _lines(data: bytes) -> list[bytes]:
    return [line for line in data.splitlines() if line.startswith((b"data: ", b"event: "))]


@pytest.mark.parametrize("name", ["openai/responses_text", "openai/responses_mcp_approval"])
def test_a_stream_of_the_responses_api_passes_byte_by_byte(name: str) -> None:
    stream = next(one for one in RECORDINGS if one.name == name)
    body, _ = replayed(RESPONSES, decoder_as_sent(stream.preset), stream.data, 50)
    assert _lines(body) == _lines(stream.data)


def test_a_stream_of_the_responses_api_is_told_whole() -> None:
    stream = STREAMS["openai-responses"]  # without the beginnings and ends of what it tells
    body, _ = replayed(RESPONSES, decoder_as_sent(stream.preset), stream.data, 50)
    output = json.loads(_lines(body)[-1][6:])["response"].pop("output")
    assert output[0]["summary"] == [{"type": "summary_text", "text": "Thinking"}]
    assert (output[1]["content"][0]["text"], output[2]["arguments"]) == ("Hello", '{"a":1}')


@pytest.mark.parametrize(
    "stream",
    [one for one in _ALL if one.preset == "anthropic/v1/messages" and one.name not in NOT_WELL_FORMED],
    ids=lambda stream: str(stream.name),
)
def test_a_stream_of_anthropics_api_passes_event_by_event(stream: Stream) -> None:
    body, _ = replayed(ANTHROPICS, decoder_as_sent(stream.preset), stream.data, _PIECE)
    sent, passed = (
        [event for line in data.splitlines() if line.startswith(b"data:") if (event := json.loads(line[5:]))]
        for data in (stream.data, body)
    )
    sent, passed = ([event for event in events if event["type"] != "ping"] for events in (sent, passed))
    sent = sent[: [event["type"] for event in sent].index("message_stop")]  # what follows is of another message
    assert passed[: len(sent)] == sent
    end = [event["type"] for event in passed[len(sent) :]]
    assert end == ["content_block_stop", "message_delta", "message_stop"][-len(end) :]


def test_the_recordings_hold_calls_reasoning_and_errors() -> None:
    assert STREAMS["anthropic-messages"].reasoning and STREAMS["openai-tool-calls"].tools
    assert any(recording.error for recording in RECORDINGS)
