import asyncio
from typing import Any

from starlette.types import Message, Send

from opensearch_ml_stream.rest_handlers.http.body_memory import BodyReservation
from opensearch_ml_stream.rest_handlers.http.chunk_writer import CHUNK_WRITER, ChunkWriter, MessageWriter
from opensearch_ml_stream.rest_handlers.http.response_lifecycle import (
    InFlightResponse,
    InFlightResponses,
    ResponseLimits,
)
from tests.virtual_time import in_virtual_time


async def _refuse(message: Message) -> None:
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
    await MessageWriter(_refuse).drain()


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
    writer = MessageWriter(_refuse)
    assert writer.last_write == 3.0
    await asyncio.sleep(2)
    writer.write_chunk(b"one")
    assert writer.last_write == 5.0


def test_the_servers_own_writer_is_taken_where_it_offers_one() -> None:
    own = MessageWriter(_refuse)
    assert CHUNK_WRITER == "opensearch_ml_stream.chunk_writer"
    assert _writer({"extensions": {CHUNK_WRITER: own}}, _refuse) is own


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
