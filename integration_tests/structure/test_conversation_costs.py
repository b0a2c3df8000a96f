"""What the APIs of OpenAI and Anthropic cost beside `_predict/stream`, in steps: what is done of a request and a chunk.

Without the server's and the upstream client's part, which is the same for all; a step is a line of Python or a call of
C.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pytest
from integration_tests.support.connector_bodies import anthropic, openai

from opensearch_ml_stream.connectors.chunks import Ending
from opensearch_ml_stream.connectors.decoding.contract import StreamDecoder
from opensearch_ml_stream.connectors.documents import connector_document, read_connector, read_model
from opensearch_ml_stream.connectors.predict.inputs import RemoteInput, read_predict_input
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.connectors.wire_format import NDJSON, WireFormat
from opensearch_ml_stream.extensions.anthropic_api.messages_api import MessagesAPI
from opensearch_ml_stream.extensions.openai_api.http.completions_api import ChatAPI
from opensearch_ml_stream.extensions.openai_api.http.responses_api import ResponsesAPI
from opensearch_ml_stream.plugin.predictions.compiled_model import CompiledModel
from opensearch_ml_stream.plugin.predictions.conversation_calls import stream_request
from opensearch_ml_stream.rest_handlers.routes.conversation_endpoint import ConversationAPI
from tests.counted_work import steps

# Multiples of what `_predict/stream` takes on the same provider. A request is a stream of a single text; /v1/responses
# counts its events, and says all texts again at the end.
MOST_OF_A_CHUNK = {"/v1/chat/completions": 1.05, "/v1/messages": 1.1, "/v1/responses": 1.8}
MOST_OF_A_REQUEST = {"/v1/chat/completions": 1.4, "/v1/messages": 1.45, "/v1/responses": 1.5}
MOST_OF_A_REQUEST_AS_SENT = {"/v1/chat/completions": 1.1, "/v1/messages": 1.3}  # by a provider of the dialect
MOST_OF_A_READ_AS_SENT = {"/v1/chat/completions": 1.25, "/v1/messages": 1.32}  # which sends all of the stream at once
MOST_OF_A_PADDING = 2  # steps of a chunk

MESSAGES = [{"role": "user", "content": "Say hello."}]
CHAT = {"model": "m", "messages": MESSAGES, "stream": True}
APIS: dict[str, tuple[ConversationAPI, dict[str, Any]]] = {
    "/v1/chat/completions": (ChatAPI(lambda: 0), CHAT),
    "/v1/messages": (MessagesAPI(lambda: "0"), {**CHAT, "max_tokens": 9}),
    "/v1/responses": (ResponsesAPI(lambda: 0), {"model": "m", "input": "Say hello.", "stream": True}),
}
PREDICT = "_predict/stream"
WAYS = (PREDICT, *APIS)

Begin = Callable[[], tuple[StreamDecoder, WireFormat]]


def _event(payload: dict[str, Any]) -> bytes:
    name = f"event: {payload['type']}\n".encode() if "type" in payload else b""
    return name + b"data: " + json.dumps(payload, separators=(",", ":")).encode() + b"\n\n"


@dataclass(frozen=True)
class Provider:
    """A provider, and the events of its streams as it sends them."""

    connector: dict[str, Any]
    first: Sequence[dict[str, Any]]
    text: Callable[[str], dict[str, Any]]
    last: Sequence[dict[str, Any]]
    end: bytes = b""

    @cached_property
    def model(self) -> CompiledModel:
        connector = read_connector(connector_document(self.connector))
        return CompiledModel("m", read_model({}), connector, self.connector["credential"])

    def begin(self, way: str) -> Begin:
        """What a way in does of a request before its stream, from the body on."""
        model = self.model
        if way == PREDICT:
            body = json.dumps({"parameters": {"messages": MESSAGES}}).encode()

            def predict() -> tuple[StreamDecoder, WireFormat]:
                asked = read_predict_input(body)
                assert isinstance(asked, RemoteInput)
                streaming = model.spec(asked.parameters)
                model.action().render(asked.parameters, streaming)
                return streaming.decoder(), NDJSON

            return predict
        api, sent = APIS[way]
        body = json.dumps(sent).encode()

        def converse() -> tuple[StreamDecoder, WireFormat]:
            asked = api.read(jsontext.load_object(body))
            return stream_request(asked.request, model)[1](), asked.wire()

        return converse

    def request(self, way: str, *, at_once: bool = False) -> int:
        """The steps of a stream of a single text, of which the provider may send all at once."""
        begin = self.begin(way)
        events = [*map(_event, self.first), _event(self.text("Hello")), b"".join(map(_event, self.last)) + self.end]
        if at_once:
            events = [b"".join(events)]

        def stream() -> None:
            decoder, wire = begin()
            for event in events:
                chunks = decoder.feed(event)
                if decoder.outcome is None and chunks:
                    wire.chunks(chunks)
            wire.last(chunks, decoder.outcome, {})  # type: ignore[arg-type]

        stream()
        return steps(stream)

    def chunk(self, way: str) -> int:
        """The steps of a text in the middle of a stream."""
        decoder, wire = self.begin(way)()
        for event in [*map(_event, self.first), _event(self.text("Hello")), _event(self.text(" world"))]:
            if chunks := decoder.feed(event):
                wire.chunks(chunks)
        event = _event(self.text(" again"))
        return steps(lambda: wire.chunks(decoder.feed(event)))

    def read(self, way: str, texts: int) -> int:
        """The steps of a stream that comes in one read, with the first text of its own."""
        decoder, wire = self.begin(way)()
        first = b"".join(map(_event, [*self.first, self.text("Hello")]))
        rest = b"".join(map(_event, [*[self.text(" again")] * texts, *self.last])) + self.end
        wire.chunks(decoder.feed(first))
        return steps(lambda: wire.last(decoder.feed(rest), Ending(), {}))


def _chat(delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    of_response = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "system_fingerprint": "f"}
    return {**of_response, "service_tier": "default", "choices": [choice], "usage": None, **more}


def _padded(text: str) -> dict[str, Any]:
    return _chat({"content": text}, obfuscation="xyzw"[: len(text) - 4])


_MESSAGE = {
    "id": "m",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [],
    "usage": {"input_tokens": 9, "output_tokens": 1},
}
OPENAI = Provider(
    openai("http://127.0.0.1:1"),
    [_chat({"role": "assistant", "content": "", "refusal": None})],
    lambda text: _chat({"content": text}),
    [_chat({}, "stop"), _chat({}, choices=[], usage={"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10})],
    b"data: [DONE]\n\n",
)
PADDED = Provider(OPENAI.connector, OPENAI.first, _padded, OPENAI.last, OPENAI.end)
ANTHROPIC = Provider(
    anthropic("http://127.0.0.1:1"),
    [
        {"type": "message_start", "message": _MESSAGE},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    ],
    lambda text: {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
    [
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ],
)


every_provider = pytest.mark.parametrize("provider", [OPENAI, PADDED, ANTHROPIC], ids=["OpenAI", "padded", "Anthropic"])


@every_provider
@pytest.mark.parametrize("way", APIS)
def test_a_chunk_costs_little_more_than_by_the_predict_route(provider: Provider, way: str) -> None:
    assert provider.chunk(way) <= MOST_OF_A_CHUNK[way] * provider.chunk(PREDICT)


@every_provider
@pytest.mark.parametrize("way", [way for way in WAYS if way != "/v1/responses"])
def test_a_text_within_a_long_read_costs_no_step(provider: Provider, way: str) -> None:
    assert provider.read(way, texts=300) == provider.read(way, texts=200)


@every_provider
@pytest.mark.parametrize("way", APIS)
def test_a_request_costs_little_more_than_by_the_predict_route(provider: Provider, way: str) -> None:
    assert provider.request(way) <= MOST_OF_A_REQUEST[way] * provider.request(PREDICT)


@pytest.mark.parametrize(
    ("provider", "way"),
    [(OPENAI, "/v1/chat/completions"), (PADDED, "/v1/chat/completions"), (ANTHROPIC, "/v1/messages")],
    ids=["OpenAI", "padded", "Anthropic"],
)
def test_a_request_to_a_provider_of_its_own_dialect_costs_less(provider: Provider, way: str) -> None:
    assert provider.request(way) <= MOST_OF_A_REQUEST_AS_SENT[way] * provider.request(PREDICT)
    in_one_read = provider.request(way, at_once=True)
    assert in_one_read <= MOST_OF_A_READ_AS_SENT[way] * provider.request(PREDICT, at_once=True)


@pytest.mark.parametrize("way", WAYS)
def test_a_padding_costs_next_to_nothing(way: str) -> None:
    assert PADDED.chunk(way) <= OPENAI.chunk(way) + MOST_OF_A_PADDING
