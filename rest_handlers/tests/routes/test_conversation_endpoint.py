"""Conversations of a client API: who may ask, what is read, and how an answer is sent."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest
from starlette.types import Receive, Scope, Send

from opensearch_ml_stream.connectors.chunks import Chunk, Chunks, Ending
from opensearch_ml_stream.connectors.conversation.answer import WholeAnswer
from opensearch_ml_stream.connectors.conversation.conversation import Conversation
from opensearch_ml_stream.connectors.conversation.dialect import ClientRequest
from opensearch_ml_stream.connectors.errors import (
    InvalidRequest,
    MLStreamError,
    NotFound,
    Unauthorized,
    UpstreamError,
)
from opensearch_ml_stream.connectors.wire_format import SSE, WireFormat
from opensearch_ml_stream.rest_handlers import actions
from opensearch_ml_stream.rest_handlers.callers import Caller
from opensearch_ml_stream.rest_handlers.http.response_lifecycle import InFlightResponses
from opensearch_ml_stream.rest_handlers.routes.conversation_endpoint import AtPaths, ConversationEndpoint
from tests.asgi_exchange import JSON_HEADERS, Exchange, send_request
from tests.recording_gate import CALLER, RecordingGate
from tests.scripted_predictions import LIMITS, ScriptedStream, Step, text

END = Ending("stop")
PATH = "/api/talk"


class Wire(WireFormat):
    """SSE that tells whether it was prepared when the first chunks came."""

    content_type = SSE.content_type
    is_prepared = False
    was_prepared = False

    @property
    def heartbeat(self) -> bytes:
        return SSE.heartbeat

    def prepare(self) -> None:
        self.is_prepared = True

    def chunks(self, chunks: Chunks) -> bytes:
        self.was_prepared = self.is_prepared
        return SSE.chunks(chunks)

    def ending(self, ending: Ending, extra: dict[str, Any]) -> bytes:
        return SSE.ending(ending, extra)

    def error(self, error: MLStreamError) -> bytes:
        return SSE.error(error)


@dataclass(frozen=True)
class Talk:
    """What a client of a small API asks for."""

    model: str
    is_stream: bool
    request: ClientRequest
    format: Wire

    def wire(self) -> WireFormat:
        return self.format

    def whole(self, answer: WholeAnswer) -> bytes:
        return orjson.dumps({"said": answer.chunk.text})


class TalkDoor:
    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def read(self, body: dict[str, Any]) -> Talk:
        if "say" not in body:
            raise InvalidRequest("[say] is missing")
        request = ClientRequest("talk", body, lambda _: Conversation(()))
        return Talk(body["model"], body.get("stream", False), request, self._wire)


@dataclass
class ScriptedConversations:
    """Answers with the steps of a script, or with an error."""

    steps: tuple[Step, ...] = ()
    error: Exception | None = None
    translates: bool = False
    wire: Wire = field(default_factory=Wire)
    asked: list[tuple[str, Caller, str, object]] = field(default_factory=list)

    @asynccontextmanager
    async def stream(self, caller: Caller, name: str, request: ClientRequest) -> AsyncIterator[ScriptedStream]:
        self.asked.append(("stream", caller, name, request.body["say"]))
        if self.error is not None:
            raise self.error
        if self.translates:
            assert request.conversation == Conversation(())
        await asyncio.sleep(0)  # for the provider
        yield ScriptedStream(self.steps)

    async def whole(self, caller: Caller, name: str, request: ClientRequest) -> WholeAnswer:
        self.asked.append(("whole", caller, name, request.body["say"]))
        if self.error is not None:
            raise self.error
        return WholeAnswer(Chunk("all"), END, "m1", {}, is_as_sent=False, extra={})


async def elsewhere(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 418, "headers": []})
    await send({"type": "http.response.body", "body": b""})


async def ask(
    conversations: ScriptedConversations,
    body: object,
    gate: RecordingGate | None = None,
    path: str = PATH,
    headers: dict[str, str] | None = None,
    method: str = "POST",
) -> Exchange:
    endpoint = ConversationEndpoint(
        TalkDoor(conversations.wire), conversations, InFlightResponses(LIMITS), gate or RecordingGate()
    )
    return await send_request(AtPaths({PATH: endpoint}, elsewhere), method, path, body, headers)


async def test_an_answer_is_streamed_in_the_format_of_the_client() -> None:
    conversations = ScriptedConversations((text("For", "ty"), END))
    exchange = await ask(conversations, {"model": "m", "say": "Why?", "stream": True})
    assert (exchange.status, exchange.headers["content-type"]) == (200, "text/event-stream")
    assert exchange.parts == [SSE.chunks(text("For", "ty")), SSE.ending(END, {})]
    assert conversations.asked == [("stream", CALLER, "m", "Why?")]


@pytest.mark.parametrize("translates", [True, False])
async def test_a_translated_stream_is_prepared_while_its_provider_is_awaited(translates: bool) -> None:
    conversations = ScriptedConversations((text("For"), END), translates=translates)
    await ask(conversations, {"model": "m", "say": "Why?", "stream": True})
    assert conversations.wire.was_prepared is translates


async def test_an_answer_in_one_piece_is_the_body_that_the_client_api_has() -> None:
    conversations = ScriptedConversations()
    exchange = await ask(conversations, {"model": "m", "say": "Why?"})
    assert (exchange.status, orjson.loads(exchange.body)) == (200, {"said": "all"})
    assert conversations.asked == [("whole", CALLER, "m", "Why?")]


@pytest.mark.parametrize("is_stream", [True, False])
async def test_an_answer_in_one_piece_needs_the_permission_for_whole_predictions(is_stream: bool) -> None:
    gate = RecordingGate()
    await ask(ScriptedConversations((END,)), {"model": "m", "say": "Why?", "stream": is_stream}, gate)
    either, whole = (actions.PREDICT_STREAM, actions.PREDICT), (actions.PREDICT,)
    assert gate.asked == [either] if is_stream else [either, whole]


@pytest.mark.parametrize("is_stream", [True, False])
@pytest.mark.parametrize("error", [NotFound("no model"), UpstreamError("down")])
async def test_what_fails_before_the_first_chunk_is_a_status(error: Exception, is_stream: bool) -> None:
    exchange = await ask(ScriptedConversations(error=error), {"model": "m", "say": "Why?", "stream": is_stream})
    assert exchange.status == (404 if isinstance(error, NotFound) else 424)


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        ({"model": "m"}, {}, 400),
        ("no object", {}, 400),
        ({"model": "m", "say": "x" * LIMITS.max_body_size}, {}, 413),
        ({"model": "m", "say": "Why?"}, {"content-type": "text/plain"}, 406),
    ],
)
async def test_what_cannot_be_read_is_refused_before_a_model_is_asked(
    body: object, headers: dict[str, str], status: int
) -> None:
    conversations = ScriptedConversations()
    exchange = await ask(conversations, body, headers={**JSON_HEADERS, **headers})
    assert (exchange.status, conversations.asked) == (status, [])


async def test_the_body_of_who_may_not_call_is_not_read() -> None:
    exchange = await ask(ScriptedConversations(), "no object", RecordingGate(Unauthorized()))
    assert exchange.status == 401


async def test_all_other_paths_go_on_and_other_methods_are_refused() -> None:
    assert (await ask(ScriptedConversations(), {}, path=f"{PATH}/more")).status == 418
    assert (await ask(ScriptedConversations(), None, method="GET")).status == 405
