"""When the head and the heartbeats of a stream are sent, in virtual seconds."""

import asyncio
from dataclasses import replace

import pytest

from opensearch_ml_stream.connectors.chunks import Ending
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.wire_format import NDJSON, SSE, WireFormat
from opensearch_ml_stream.rest_handlers.http.asgi_extensions import CHUNK_WRITER
from opensearch_ml_stream.rest_handlers.http.response_lifecycle import MessageWriter
from tests.asgi_exchange import JSON_HEADERS, Exchange
from tests.scripted_predictions import (
    BODY,
    LIMITS,
    STREAM_PATH,
    Raised,
    ScriptedPredictions,
    Sidecar,
    stream_request,
    text,
)
from tests.virtual_time import in_virtual_time

SSE_PATH = STREAM_PATH + "?format=sse"
END = SSE.ending(Ending(), {})
PING = b": ping\n"


def sse(*texts: str) -> bytes:
    return SSE.chunks(text(*texts))


def timeline(exchange: Exchange) -> list[tuple[float, bytes]]:
    """When each message was sent, and its body; the head has none."""
    return list(zip(exchange.send_times, [message.get("body", b"head") for message in exchange.messages], strict=True))


async def stream(predictions: ScriptedPredictions, path: str = SSE_PATH) -> Exchange:
    return await stream_request(path).run(Sidecar(predictions).application)


@in_virtual_time
async def test_a_provider_that_responds_in_time_makes_no_heartbeat() -> None:
    exchange = await stream(ScriptedPredictions(4.0, text("a"), 14.0, text("b"), 14.0, Ending()))
    assert timeline(exchange) == [(4.0, b"head"), (4.0, sse("a")), (18.0, sse("b")), (32.0, END)]


@pytest.mark.parametrize(("path", "wire"), [(SSE_PATH, SSE), (STREAM_PATH, NDJSON)], ids=["sse", "ndjson"])
@in_virtual_time
async def test_head_and_heartbeat_are_sent_after_the_first_event_wait(path: str, wire: WireFormat) -> None:
    exchange = await stream(ScriptedPredictions(8.0, text("a"), Ending()), path)
    a, end = wire.chunks(text("a")), wire.ending(Ending(), {})
    assert timeline(exchange) == [(5.0, b"head"), (5.0, wire.heartbeat), (8.0, a), (8.0, end)]
    assert (exchange.status, exchange.headers["content-type"]) == (200, wire.content_type)


@in_virtual_time
async def test_heartbeats_go_on_at_their_interval_while_the_provider_is_silent() -> None:
    exchange = await stream(ScriptedPredictions(51.0, Ending()))
    pings = [(5.0, PING), (20.0, PING), (35.0, PING), (50.0, PING)]
    assert timeline(exchange) == [(5.0, b"head"), *pings, (51.0, END)]


@in_virtual_time
async def test_a_heartbeat_comes_only_after_the_interval_of_silence_since_the_last_chunk() -> None:
    exchange = await stream(ScriptedPredictions(1.0, text("a"), 9.0, text("b"), 40.0, text("c"), 16.0, Ending()))
    assert timeline(exchange) == [
        (1.0, b"head"), (1.0, sse("a")),
        (10.0, sse("b")), (25.0, PING), (40.0, PING),
        (50.0, sse("c")), (65.0, PING),
        (66.0, END),
    ]  # fmt: skip


@in_virtual_time
async def test_heartbeats_go_on_after_one_has_failed_which_the_loop_is_told_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[tuple[float, object]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda loop, context: told.append((loop.time(), context["exception"])))
    failures, drain = [RuntimeError("x")], MessageWriter.drain

    async def drain_after_a_failure(writer: MessageWriter) -> None:
        if failures:
            raise failures.pop()
        await drain(writer)

    monkeypatch.setattr(MessageWriter, "drain", drain_after_a_failure)
    exchange = await stream(ScriptedPredictions(51.0, Ending()))
    assert [(time, type(error)) for time, error in told] == [(5.0, RuntimeError)]
    assert timeline(exchange)[0] == (5.0, b"head")
    assert [time for time, body in timeline(exchange)[1:-1] if PING in body] == [20.0, 35.0, 50.0]
    assert timeline(exchange)[-1] == (51.0, END)


@in_virtual_time
async def test_chunks_in_quick_succession_leave_no_room_for_heartbeats() -> None:
    steps = [step for number in range(20) for step in (14.0, text(str(number)))]
    exchange = await stream(ScriptedPredictions(*steps, Ending()))
    chunks = [(14.0 * (number + 1), sse(str(number))) for number in range(20)]
    assert timeline(exchange) == [(5.0, b"head"), (5.0, PING), *chunks, (280.0, END)]


@in_virtual_time
async def test_an_error_after_the_head_was_sent_early_is_the_terminal_object() -> None:
    error = UpstreamError("no")
    exchange = await stream(ScriptedPredictions(text("never"), opening=(6.0, Raised(error))))
    assert timeline(exchange) == [(5.0, b"head"), (5.0, PING), (6.0, SSE.error(error))]
    assert exchange.complete


@in_virtual_time
async def test_a_response_that_has_ended_gets_no_heartbeat_while_the_provider_call_is_wound_up() -> None:
    predictions = ScriptedPredictions(text("a"), Ending(), closing=(100.0,))
    exchange = await stream(predictions)
    assert timeline(exchange) == [(0.0, b"head"), (0.0, sse("a")), (0.0, END)]
    assert asyncio.get_running_loop().time() == 100.0
    assert predictions.closed.is_set()


@in_virtual_time
async def test_a_response_of_one_object_is_not_kept_alive() -> None:
    exchange = await stream(ScriptedPredictions(opening=(100.0,)), STREAM_PATH + "?stream=false")
    assert exchange.send_times == [100.0, 100.0]


@in_virtual_time
async def test_a_client_that_waits_long_for_one_object_may_still_disconnect() -> None:
    predictions = ScriptedPredictions(opening=(asyncio.Event(),))
    exchange = stream_request(STREAM_PATH + "?stream=false")
    async with exchange.running(Sidecar(predictions).application):
        await asyncio.sleep(100)
        exchange.disconnect()
    assert (exchange.messages, predictions.closed.is_set()) == ([], True)


@in_virtual_time
async def test_a_heartbeat_interval_shorter_than_the_first_event_wait_counts_from_the_head() -> None:
    predictions = ScriptedPredictions(12.0, Ending())
    application = Sidecar(predictions, replace(LIMITS, heartbeat=3.0)).application
    exchange = await stream_request(SSE_PATH).run(application)
    assert timeline(exchange) == [(5.0, b"head"), (5.0, PING), (8.0, PING), (11.0, PING), (12.0, END)]


class ServerWriter:
    """A ChunkWriter of a server; `write_chunk` returns the next of `results`."""

    def __init__(self, results: list[bool]) -> None:
        self.last_write = 0.0
        self.calls: list[tuple[float, bytes | str]] = []
        self._results = results

    def write_chunk(self, data: bytes) -> bool:
        self.last_write = asyncio.get_running_loop().time()
        self.calls.append((self.last_write, data))
        return self._results.pop(0)

    async def drain(self) -> None:
        self.calls.append((asyncio.get_running_loop().time(), "drain"))


@in_virtual_time
async def test_a_writer_of_the_server_gets_chunks_and_heartbeats_and_its_writes_put_heartbeats_off() -> None:
    writer = ServerWriter([True, True, False, True, True])
    steps = (text("a"), 10.0, text("b"), 10.0, text("c"), 10.0, text("d"), 17.0, Ending())
    predictions = ScriptedPredictions(*steps)
    exchange = Exchange("POST", SSE_PATH, BODY, JSON_HEADERS, {CHUNK_WRITER: writer})
    await exchange.run(Sidecar(predictions).application)
    assert timeline(exchange) == [(0.0, b"head"), (47.0, END)]
    assert writer.calls == [
        (0.0, sse("a")), (0.0, "drain"),
        (10.0, sse("b")),
        (20.0, sse("c")), (20.0, "drain"),
        (30.0, sse("d")),
        (45.0, PING), (45.0, "drain"),
        (47.0, "drain"),
    ]  # fmt: skip
    assert predictions.provider.writes == [True, False, True]
    assert writer.last_write == 45.0
