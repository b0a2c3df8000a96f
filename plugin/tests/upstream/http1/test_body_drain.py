"""The last bytes of a response whose reader has finished early are waited for a moment, and not longer."""

import asyncio
from collections.abc import Callable

import pytest

from opensearch_ml_stream.plugin.upstream.http1.bodies import Body, ChunkedBody, LengthBody
from opensearch_ml_stream.plugin.upstream.http1.client import BodyDrain
from tests.upstream.fake_transport import FakeTransport
from tests.upstream.virtual_time_loop import now, pending_timers

DRAIN_SECONDS = 0.05
DRAIN_BYTES = 1024


def drained(body: Body) -> tuple[FakeTransport, list[tuple[bool, float]]]:
    """A transport whose body is drained, and when that ended with what."""
    transport = FakeTransport(asyncio.Protocol())
    ends: list[tuple[bool, float]] = []
    BodyDrain(transport, body, lambda reusable: ends.append((reusable, now())))
    return transport, ends


async def test_a_body_that_ends_leaves_a_connection_that_can_be_reused() -> None:
    transport, ends = drained(ChunkedBody())
    assert transport.calls == ["set_protocol"]
    transport.receive(b"3\r\none\r\n")
    await asyncio.sleep(DRAIN_SECONDS * 0.9)
    assert ends == []
    transport.receive(b"0\r\n\r\n")
    assert ends == [(True, DRAIN_SECONDS * 0.9)]


async def test_the_end_is_reported_once() -> None:
    transport, ends = drained(ChunkedBody())
    transport.receive(b"0\r\n\r\n")
    assert pending_timers() == 0
    transport.receive(b"more")
    transport.receive_eof()
    await asyncio.sleep(1)
    assert ends == [(True, 0)]


async def test_a_body_that_does_not_end_in_time_costs_the_connection() -> None:
    _, ends = drained(ChunkedBody())
    await asyncio.sleep(1)
    assert ends == [(False, DRAIN_SECONDS)]


async def test_a_body_that_goes_on_for_more_than_a_few_bytes_costs_the_connection() -> None:
    transport, ends = drained(LengthBody(10 * DRAIN_BYTES))
    transport.receive(bytes(DRAIN_BYTES // 2))
    transport.receive(bytes(DRAIN_BYTES // 2))
    assert ends == []
    transport.receive(b"1")
    assert ends == [(False, 0)]


async def test_the_last_of_the_allowed_bytes_may_be_the_last_of_the_body() -> None:
    transport, ends = drained(LengthBody(DRAIN_BYTES))
    transport.receive(bytes(DRAIN_BYTES))
    assert ends == [(True, 0)]


def receive_and_close(transport: FakeTransport) -> None:
    transport.receive(b"1\r\na\r\n")
    transport.protocol, draining = asyncio.Protocol(), transport.protocol
    transport.close()
    assert isinstance(draining, asyncio.Protocol)
    draining.data_received(b"0\r\n\r\n")


@pytest.mark.parametrize(
    "event",
    [
        lambda transport: transport.receive(b"no chunk"),
        lambda transport: transport.receive(b"0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"),
        FakeTransport.receive_eof,
        FakeTransport.reset,
        receive_and_close,
    ],
    ids=["malformed", "excess", "closed by the provider", "broken", "closing"],
)
async def test_a_connection_that_is_of_no_use_ends_it(event: Callable[[FakeTransport], None]) -> None:
    transport, ends = drained(ChunkedBody())
    event(transport)
    await asyncio.sleep(0)
    assert ends == [(False, 0)]
