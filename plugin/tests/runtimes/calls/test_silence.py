"""How long a runtime may be silent in the middle of a response, in virtual time."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from opensearch_ml_stream.plugin.runtimes.runtime_response import RuntimeResponse
from opensearch_ml_stream.plugin.upstream import ReadTimedOut
from opensearch_ml_stream.runtimes.frames import INITIAL_CREDIT, Kind
from tests.upstream.virtual_time_loop import VirtualTimeLoop, now, pending_timers


class Arriving:
    """A response, and what it has sent to the process."""

    def __init__(self) -> None:
        self.sent: list[Kind] = []
        self.response = RuntimeResponse("m", lambda kind, payload: self.sent.append(kind), is_stream=True)
        self.arrive(b"{}")

    def arrive(self, *payloads: bytes) -> None:
        self.response.arrived = [*payloads]
        self.response.deliver()

    async def silent_at(self) -> float:
        with pytest.raises(ReadTimedOut):
            while await self.response.read():
                pass
        return now()


def in_virtual_time(scenario: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        await scenario()

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(run())


def test_silence_is_counted_from_the_last_response_and_the_call_is_cancelled() -> None:
    async def scenario() -> None:
        one = Arriving()
        one.response.limit_silence(10)
        asyncio.get_running_loop().call_later(7, one.arrive, b"{}")
        assert await one.silent_at() == 17
        assert one.sent == [Kind.CANCEL]
        assert pending_timers() == 0

    in_virtual_time(scenario)


def test_silence_is_not_counted_while_the_process_has_no_credit_but_anew_from_then_on() -> None:
    async def scenario() -> None:
        one = Arriving()
        one.response.limit_silence(10)
        one.arrive(b"x" * INITIAL_CREDIT)
        await asyncio.sleep(95)  # the timer looks again at 100
        assert await one.silent_at() == 105
        assert one.sent == [Kind.CREDIT, Kind.CANCEL]

    in_virtual_time(scenario)


def test_the_shorter_of_two_limits_holds_whichever_comes_first() -> None:
    async def scenario() -> None:
        for limits in ((10, 4), (4, 10)):
            one, began = Arriving(), now()
            for limit in limits:
                one.response.limit_silence(limit)
            assert await one.silent_at() - began == 4

    in_virtual_time(scenario)


def test_a_response_that_is_over_has_no_timer() -> None:
    async def scenario() -> None:
        one = Arriving()
        one.response.limit_silence(10)
        one.response.end()
        one.arrive()
        one.response.limit_silence(5)
        assert await one.response.read() == b"{}\0"
        await asyncio.sleep(20)
        assert await one.response.read() == b""
        assert pending_timers() == 0

    in_virtual_time(scenario)
