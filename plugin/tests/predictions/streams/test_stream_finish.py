"""After its finish reason a provider is waited for only a little, by a clock that jumps to the next timer."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from opensearch_ml_stream.connectors.chunks import Chunk, Chunks, Ending, Usage, to_chunk_list
from opensearch_ml_stream.connectors.errors import StreamTruncated, UpstreamError
from opensearch_ml_stream.connectors.providers.openai_chat import OPENAI_CHAT
from opensearch_ml_stream.plugin.credentials.redaction import Redactor
from opensearch_ml_stream.plugin.predictions.provider_stream import FINISH_SECONDS, ProviderStream
from opensearch_ml_stream.plugin.upstream import ReadTimedOut, Sink, pump_by_reading
from tests.predictions.scripted_provider import SSE, openai_event
from tests.upstream.virtual_time_loop import VirtualTimeLoop

FINISH = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":2,"completion_tokens":3,"total_tokens":5}}\n\n'
DONE = b"data: [DONE]\n\n"
PING = b": ping\n\n"
FOREVER = 1_000_000.0
STOPPED = Ending(native_finish_reason="stop")
COUNTED = Ending(native_finish_reason="stop", usage=Usage(2, 3, 5))

Step = bytes | float | UpstreamError  # bytes that come, seconds of silence, or how the connection breaks


@dataclass
class PacedResponse:
    """A response that plays its steps."""

    steps: Sequence[Step]
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: SSE)
    position: int = 0

    async def read(self) -> bytes:
        while self.position < len(self.steps):
            step = self.steps[self.position]
            self.position += 1
            if isinstance(step, UpstreamError):
                raise step
            if isinstance(step, bytes):
                return step
            await asyncio.sleep(step)
        return b""

    async def pump(self, sink: Sink) -> bool:
        return await pump_by_reading(self.read, sink)

    def limit_silence(self, seconds: float) -> None:
        pass

    def fail(self, error: UpstreamError) -> None:
        pass


def relayed(*steps: Step, room: int = 1_000) -> tuple[list[Chunk], Ending | UpstreamError | None, float]:
    """The chunks, the outcome and when it came, of a stream that is read once and then pumped, as the routes do.

    The writer takes `room` chunks at a time.
    """

    async def relay() -> tuple[list[Chunk], Ending | UpstreamError | None, float]:
        stream = _stream(steps)
        chunks = to_chunk_list(await stream.read())
        written = 0

        def encode(more: Chunks) -> bytes:
            chunks.extend(to_chunk_list(more))
            return b""

        def write(data: bytes) -> bool:
            nonlocal written
            written += 1
            return written % room != 0

        while stream.outcome is None:
            chunks.extend(to_chunk_list(await stream.pump(encode, write)))
        return chunks, stream.outcome, asyncio.get_running_loop().time()

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(relay())


def _stream(steps: Sequence[Step]) -> ProviderStream:
    return ProviderStream(PacedResponse(steps), OPENAI_CHAT.decoder(), Redactor({}))


def test_a_provider_that_falls_silent_after_its_finish_reason_is_waited_for_three_seconds() -> None:
    assert FINISH_SECONDS == 3
    assert relayed(openai_event("a"), FINISH, FOREVER) == ([Chunk("a")], STOPPED, 3)


def test_pings_after_the_finish_reason_do_not_make_the_wait_longer() -> None:
    pings: list[Step] = [step for _ in range(100) for step in (1.0, PING)]
    assert relayed(openai_event("a"), FINISH, *pings) == ([Chunk("a")], STOPPED, 3)


def test_before_the_finish_reason_there_is_no_such_limit() -> None:
    steps: list[Step] = [openai_event("a"), 20.0, PING, 20.0, openai_event("b"), 20.0, FINISH, DONE]
    assert relayed(*steps) == ([Chunk("a"), Chunk("b")], STOPPED, 60)


@pytest.mark.parametrize("pause", [0.0, 1.0])
def test_usage_and_terminator_that_follow_in_time_end_the_stream_at_once(pause: float) -> None:
    steps: list[Step] = [openai_event("a"), FINISH, pause, USAGE, pause, DONE, FOREVER]
    assert relayed(*steps) == ([Chunk("a")], COUNTED, 2 * pause)


def test_usage_without_a_terminator_is_kept() -> None:
    assert relayed(openai_event("a"), FINISH, 1.0, USAGE, FOREVER) == ([Chunk("a")], COUNTED, 3)


def test_text_that_follows_the_finish_reason_is_not_lost_and_is_waited_for_anew() -> None:
    steps: list[Step] = [openai_event("a"), FINISH, 2.0, openai_event("b"), 2.0, openai_event("c"), FOREVER]
    assert relayed(*steps) == ([Chunk("a"), Chunk("b"), Chunk("c")], STOPPED, 7)


def test_a_writer_that_is_full_after_the_finish_reason_loses_nothing() -> None:
    steps: list[Step] = [openai_event("a"), FINISH, openai_event("b"), openai_event("c"), USAGE, FOREVER]
    assert relayed(*steps, room=1) == ([Chunk("a"), Chunk("b"), Chunk("c")], COUNTED, 3)


def test_a_finish_reason_in_the_event_of_the_last_text_counts() -> None:
    last = b'data: {"choices":[{"index":0,"delta":{"content":"b"},"finish_reason":"length"}]}\n\n'
    chunks, outcome, end = relayed(openai_event("a"), last, FOREVER)
    assert (chunks, outcome, end) == ([Chunk("a"), Chunk("b")], Ending("length", "length"), 3)


def test_a_finish_reason_in_the_first_read_counts() -> None:
    assert relayed(openai_event("a") + FINISH, FOREVER) == ([Chunk("a")], STOPPED, 3)
    assert relayed(FINISH, FOREVER) == ([], STOPPED, 3)


@pytest.mark.parametrize("failure", [UpstreamError("reset"), ReadTimedOut("silent")])
def test_a_connection_that_breaks_after_the_finish_reason_has_lost_nothing(failure: UpstreamError) -> None:
    assert relayed(openai_event("a"), FINISH, 1.0, failure) == ([Chunk("a")], STOPPED, 1)
    assert isinstance(relayed(openai_event("a"), 1.0, UpstreamError("reset"))[1], StreamTruncated)


def test_half_an_event_after_the_finish_reason_does_not_spoil_the_end() -> None:
    assert relayed(openai_event("a"), FINISH, USAGE[:30], FOREVER) == ([Chunk("a")], STOPPED, 3)
    assert relayed(openai_event("a"), FINISH, USAGE[:30]) == ([Chunk("a")], STOPPED, 0)


def test_an_error_after_the_finish_reason_is_still_an_error() -> None:
    _, outcome, _ = relayed(openai_event("a"), FINISH, b'data: {"error": {"message": "overloaded"}}\n\n', FOREVER)
    assert isinstance(outcome, UpstreamError)
    assert "overloaded" in outcome.reason


def test_no_timer_runs_before_the_finish_reason() -> None:

    async def timers() -> list[int]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop)
        stream = _stream([openai_event("a"), openai_event("b"), FINISH, FOREVER])
        counts = []
        for _ in range(2):
            await stream.read()
            counts.append(loop.pending_timers())
        return counts

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        assert runner.run(timers()) == [0, 0]
