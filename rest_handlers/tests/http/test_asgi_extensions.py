"""Responses by what a server offers beside ASGI's messages: the same as by messages."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from starlette.types import Message, Send

from opensearch_ml_stream.connectors.chunks import Ending
from opensearch_ml_stream.connectors.wire_format import NDJSON
from opensearch_ml_stream.rest_handlers.http.asgi_extensions import (
    CHUNK_WRITER,
    DIRECT_EXCHANGE,
    HEAD_MEMO,
    ChunkWriter,
    ClientWatcher,
)
from opensearch_ml_stream.rest_handlers.http.body_memory import BodyReservation
from opensearch_ml_stream.rest_handlers.http.response_lifecycle import (
    InFlightResponse,
    InFlightResponses,
    MessageWriter,
    ResponseLimits,
)
from tests.asgi_exchange import JSON_HEADERS, Exchange
from tests.scripted_predictions import BODY, STREAM_PATH, ScriptedPredictions, Sidecar, text
from tests.virtual_time import in_virtual_time

PREDICT_PATH = "/_plugins/_ml/models/m1/_predict"


class Direct:
    """A DirectExchange that keeps what it is told. `body` is None where it comes in pieces."""

    def __init__(self, body: bytes | None) -> None:
        self.body = body
        self.lines = b""
        self.sent: bytes | None = None
        self.watchers: list[ClientWatcher | None] = []

    def take_body(self, reservation: BodyReservation) -> bytes | None:
        if self.body is not None:
            reservation.add(len(self.body))
        return self.body

    def watch(self, watcher: ClientWatcher | None) -> None:
        self.watchers.append(watcher)

    async def start(self, lines: bytes) -> None:
        self.lines = lines

    async def respond(self, lines: bytes, body: bytes) -> None:
        self.lines, self.sent = lines, body


def asked(direct: Direct, path: str = PREDICT_PATH, headers: dict[str, str] | None = None) -> Exchange:
    exchange = Exchange("POST", path, BODY, {**JSON_HEADERS, **(headers or {})}, {DIRECT_EXCHANGE: direct})
    exchange.scope[HEAD_MEMO] = {}
    return exchange


def lines_of(exchange: Exchange) -> bytes:
    return b"".join(b"%b: %b\r\n" % pair for pair in exchange.messages[0]["headers"])


@pytest.mark.parametrize(
    "headers", [{}, {"x-opaque-id": "me"}, {"host": "h.localhost", "origin": "http://h.localhost"}]
)
@pytest.mark.parametrize("path", [PREDICT_PATH, STREAM_PATH + "?stream=false", "/_plugins/_ml/_predict/remote/m1/"])
async def test_a_whole_response_is_that_of_messages(path: str, headers: dict[str, str]) -> None:
    by_messages = await Exchange("POST", path, BODY, {**JSON_HEADERS, **headers}).run(
        Sidecar(ScriptedPredictions()).application
    )
    direct = Direct(BODY)
    exchange = await asked(direct, path, headers).run(Sidecar(ScriptedPredictions()).application)
    assert exchange.messages == []
    assert (direct.lines, direct.sent) == (lines_of(by_messages), by_messages.body)
    assert direct.watchers[-1] is None


@pytest.mark.parametrize("query", ["?pretty", "?filter_path=inference_results", "?format=yaml"])
async def test_a_response_of_another_form_goes_by_messages(query: str) -> None:
    direct = Direct(BODY)
    exchange = await asked(direct, PREDICT_PATH + query).run(Sidecar(ScriptedPredictions()).application)
    assert (exchange.status, direct.sent) == (200, None)


async def test_the_head_of_a_stream_is_that_of_messages() -> None:
    by_messages = await Exchange("POST", STREAM_PATH, BODY, JSON_HEADERS).run(
        Sidecar(ScriptedPredictions(text("a"), Ending())).application
    )
    direct = Direct(BODY)
    exchange = await asked(direct, STREAM_PATH).run(Sidecar(ScriptedPredictions(text("a"), Ending())).application)
    assert direct.lines == lines_of(by_messages)
    assert [message["body"] for message in exchange.messages] == by_messages.parts


async def test_a_body_that_comes_in_pieces_is_received() -> None:
    predictions, direct = ScriptedPredictions(), Direct(None)
    await asked(direct).run(Sidecar(predictions).application)
    assert predictions.requests == [("predict", "m1", BODY, None)]


@pytest.mark.parametrize("body", [b"x" * 1001, b"{"])
async def test_a_body_that_is_refused_is_reserved_no_longer(body: bytes) -> None:
    sidecar = Sidecar(ScriptedPredictions())
    exchange = await asked(Direct(body), STREAM_PATH).run(sidecar.application)
    assert exchange.status == (413 if len(body) > 1000 else 400)
    assert sidecar.in_flight.bodies.reserved == 0


@pytest.mark.parametrize("path", [PREDICT_PATH, STREAM_PATH])
async def test_a_client_that_disconnects_ends_the_provider_call(path: str) -> None:
    predictions, direct = ScriptedPredictions(opening=(asyncio.Event(),)), Direct(BODY)
    exchange = asked(direct, path)
    async with exchange.running(Sidecar(predictions).application):
        while not direct.watchers:  # noqa: ASYNC110 - nothing says that it watches
            await asyncio.sleep(0)
        watcher = direct.watchers[0]
        assert watcher is not None
        watcher.client_half_closed()  # says nothing of what has not begun
        watcher.client_disconnected()
        watcher.client_disconnected()
    assert predictions.closed.is_set()
    assert (exchange.messages, direct.sent) == ([], None)


@in_virtual_time
async def test_a_half_closed_client_gets_heartbeats_one_after_the_other() -> None:
    predictions, direct = ScriptedPredictions(text("a"), 2.0, Ending()), Direct(BODY)
    exchange = asked(direct, STREAM_PATH)
    async with exchange.running(Sidecar(predictions).application):
        await exchange.until_sent(1)
        watcher = direct.watchers[0]
        assert watcher is not None
        exchange.writable.clear()
        watcher.client_half_closed()
        await asyncio.sleep(0.5)
        watcher.client_half_closed()
        exchange.writable.set()
    heartbeats = [message for message in exchange.messages if message["body"] == NDJSON.heartbeat]
    assert len(heartbeats) == 1


async def test_requests_with_an_equal_head_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sidecar = Sidecar(ScriptedPredictions())
    first, second = asked(Direct(BODY)), asked(Direct(BODY))
    second.scope[HEAD_MEMO] = first.scope[HEAD_MEMO]
    await first.run(sidecar.application)
    read: Callable[..., object] = _refuse
    monkeypatch.setattr("opensearch_ml_stream.rest_handlers.routes.predict_stream.read_head", read)
    await second.run(sidecar.application)
    assert sidecar.gate.asked[0] == sidecar.gate.asked[1]


async def test_what_a_head_said_is_read_again_where_login_has_come_to_be_asked_for() -> None:
    sidecar = Sidecar(ScriptedPredictions())
    first, second = asked(Direct(BODY), headers={"host": "localhost"}), asked(Direct(BODY))
    second.scope[HEAD_MEMO] = first.scope[HEAD_MEMO]
    second.scope["headers"].append((b"host", b"evil.example"))
    sidecar.gate.asks_for_login = True
    await first.run(sidecar.application)
    sidecar.gate.asks_for_login = False
    assert (await second.run(sidecar.application)).status == 421


def _refuse(*arguments: object, **options: object) -> object:
    raise AssertionError("the head was read again")


async def _refuse_message(message: Message) -> None:
    raise AssertionError(message)


async def _receive_nothing() -> Message:
    raise AssertionError


def _writer(scope: dict[str, Any], send: Send) -> ChunkWriter:
    in_flight = InFlightResponses(ResponseLimits(max_body_size=1000, first_event_wait=1, heartbeat=1))
    return InFlightResponse(scope, _receive_nothing, send, in_flight, BodyReservation(in_flight.bodies)).writer


async def test_a_chunk_is_sent_once_by_the_first_drain() -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    writer = MessageWriter(send)
    assert writer.write_chunk(b"one") is False
    assert sent == []
    await writer.drain()
    await writer.drain()
    assert sent == [{"type": "http.response.body", "body": b"one", "more_body": True}]
    assert writer.write_chunk(b"two") is False
    await writer.drain()
    assert sent[1:] == [{"type": "http.response.body", "body": b"two", "more_body": True}]


async def test_nothing_is_sent_without_a_chunk() -> None:
    await MessageWriter(_refuse_message).drain()


async def test_a_chunk_whose_sending_fails_is_not_sent_again() -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)
        raise ConnectionResetError

    writer = MessageWriter(send)
    writer.write_chunk(b"one")
    for _ in range(2):
        try:
            await writer.drain()
        except ConnectionResetError:
            continue
    assert len(sent) == 1


@in_virtual_time
async def test_the_time_of_the_last_write_is_that_of_the_writers_start_and_then_of_each_chunk() -> None:
    await asyncio.sleep(3)
    writer = MessageWriter(_refuse_message)
    assert writer.last_write == 3.0
    await asyncio.sleep(2)
    writer.write_chunk(b"one")
    assert writer.last_write == 5.0


def test_the_servers_own_writer_is_taken_where_it_offers_one() -> None:
    own = MessageWriter(_refuse_message)
    assert CHUNK_WRITER == "opensearch_ml_stream.chunk_writer"
    assert _writer({"extensions": {CHUNK_WRITER: own}}, _refuse_message) is own


async def test_without_an_offered_writer_chunks_are_messages() -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    scopes: list[dict[str, Any]] = [{}, {"extensions": {}}, {"extensions": {"http.response.trailers": {}}}]
    for scope in scopes:
        writer = _writer(scope, send)
        assert isinstance(writer, MessageWriter)
        writer.write_chunk(b"x")
        await writer.drain()
    assert [message["body"] for message in sent] == [b"x"] * 3
