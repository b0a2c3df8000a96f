"""What the steps of a response say of its times, on a clock that the test moves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from opensearch_ml_stream.connectors.chunks import Ending, Usage
from opensearch_ml_stream.connectors.decoding.contract import Outcome
from opensearch_ml_stream.connectors.errors import StreamTruncated, UpstreamError
from opensearch_ml_stream.extensions.doctor.diagnosis.observed_response import CallTimes
from opensearch_ml_stream.extensions.doctor.diagnosis.report import MAX_READS, Step
from opensearch_ml_stream.extensions.doctor.diagnosis.stream_steps import (
    outcome_fields,
    response_step,
    stream_steps,
    timeline,
)
from opensearch_ml_stream.plugin.upstream import ReadTimedOut, Sink

GOOD = Ending("stop", usage=Usage(5, 2))


@dataclass
class Head:
    """A response whose head has come."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": "text/event-stream"})

    async def read(self) -> bytes:
        raise AssertionError

    async def pump(self, sink: Sink) -> bool:
        raise AssertionError

    def limit_silence(self, seconds: float) -> None: ...

    def fail(self, error: UpstreamError) -> None: ...


class Clock:
    """Seconds that the test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def times_of(head: float, reads: Sequence[tuple[float, int]], end: float) -> CallTimes:
    """The times of a response, in seconds: its head, (a read, its chunks) ..., and its end."""
    clock = Clock()
    times = CallTimes(clock)
    times.sent()
    clock.now = head
    times.received_head(Head())
    for clock.now, chunks in reads:
        times.received(b"1234")
        times.decoded(chunks)
    clock.now = end
    times.received(b"")
    return times


def judged(times: CallTimes, outcome: Outcome = GOOD, *, was_whole: bool = False) -> dict[str, Step]:
    return {step.name: step for step in stream_steps(times, outcome, was_whole=was_whole)}


def test_a_good_stream_is_good_in_all_steps() -> None:
    times = times_of(0.2, [(0.3, 0), (0.5, 1), (0.6, 1), (0.9, 2)], 1.0)
    steps = judged(times)
    assert {step.verdict for step in steps.values()} == {"ok"}
    assert steps["first_byte"].milliseconds == pytest.approx(100)
    assert steps["first_token"].milliseconds == pytest.approx(200)
    assert steps["first_token"].details == {"time_to_first_token": 500.0}
    assert steps["gaps"].details == {
        "chunks": 4, "reads": 4, "bytes": 16, "longest_gap": 300.0, "median_gap": 100.0, "chunks_per_second": 7.5,
    }  # fmt: skip
    assert steps["end"].summary == "complete after 1000 ms: stop; input_tokens 5, output_tokens 2, total_tokens 7"


def test_a_long_wait_for_the_first_byte_or_token_is_a_warning() -> None:
    steps = judged(times_of(0.1, [(11, 1)], 12))
    assert (steps["first_byte"].verdict, steps["first_token"].verdict) == ("warning", "ok")
    steps = judged(times_of(0.1, [(0.2, 0), (11, 1)], 12))
    assert (steps["first_byte"].verdict, steps["first_token"].verdict) == ("ok", "warning")


def test_a_silence_of_ten_seconds_is_a_warning() -> None:
    step = judged(times_of(0.1, [(0.2, 1), (10.3, 1)], 10.4))["gaps"]
    assert (step.verdict, step.details["longest_gap"]) == ("warning", 10100.0)


def test_a_long_response_that_comes_all_at_once_was_buffered() -> None:
    step = judged(times_of(0.1, [(3.0, 10), (3.01, 10)], 3.02))["gaps"]
    assert step.verdict == "warning"
    assert step.advice is not None and "buffers" in step.advice
    assert judged(times_of(0.1, [(0.3, 20)], 0.4))["gaps"].verdict == "ok"  # a quick provider
    assert judged(times_of(0.1, [(3.0, 2)], 3.1))["gaps"].verdict == "ok"  # a short response
    assert judged(times_of(0.1, [(3.0, 20)], 3.1), was_whole=True)["gaps"].verdict == "ok"


def test_a_body_without_a_byte_fails_the_first_byte() -> None:
    steps = judged(times_of(0.1, [], 0.2), StreamTruncated("closed"))
    verdicts = [step.verdict for step in steps.values()]
    assert verdicts == ["failed", "skipped", "skipped", "failed"]


def test_a_body_without_text_is_a_warning_if_it_ended_well() -> None:
    assert judged(times_of(0.1, [(0.2, 0)], 0.3))["first_token"].verdict == "warning"
    assert judged(times_of(0.1, [(0.2, 0)], 0.3), UpstreamError("no"))["first_token"].verdict == "failed"


def test_a_stream_cut_at_a_common_timeout_is_told_so() -> None:
    cut = judged(times_of(0.1, [(0.2, 1)], 60.1), StreamTruncated("closed"))["end"]
    assert cut.advice is not None and cut.advice.endswith(
        "It ended after 60 s, which looks like a timeout of one of these."
    )
    other = judged(times_of(0.1, [(0.2, 1)], 47.0), StreamTruncated("closed"))["end"]
    assert other.advice is not None and "looks like a timeout" not in other.advice


@pytest.mark.parametrize(
    ("outcome", "advice"),
    [
        (ReadTimedOut("silent"), "raise read_timeout"),
        (StreamTruncated("closed"), "closed the connection too early"),
        (UpstreamError("overloaded"), "its own words"),
    ],
)
def test_each_bad_end_has_its_advice(outcome: UpstreamError, advice: str) -> None:
    step = judged(times_of(0.1, [(0.2, 1)], 3.0), outcome)["end"]
    assert (step.verdict, step.summary) == ("failed", outcome.reason)
    assert step.advice is not None and advice in step.advice


def test_a_whole_response_is_a_warning() -> None:
    times = times_of(0.1, [(0.2, 1)], 0.3)
    assert judged(times, was_whole=True)["end"].verdict == "warning"


def test_a_call_that_was_retried_and_a_compressed_response_are_warnings() -> None:
    times = times_of(0.1, [], 0.2)
    times.attempts = 1
    assert response_step(times, None, 0).verdict == "ok"
    times.attempts = 2
    assert response_step(times, None, 3).verdict == "warning"
    times.attempts = 1
    times.headers = {"content-encoding": "gzip"}
    assert response_step(times, None, 0).verdict == "warning"


def test_a_timeline_holds_times_and_harmless_headers_only() -> None:
    times = times_of(0.1, [(0.25, 1)], 0.3)
    times.headers = {"content-type": "text/event-stream", "set-cookie": "session=1", "x-request-id": "a" * 500}
    shown = timeline(times, GOOD)
    assert (shown.reads, shown.chunks, shown.status) == (((250.0, 4),), (250.0,), 200)
    assert shown.headers == {"content-type": "text/event-stream", "x-request-id": "a" * 200}
    assert shown.outcome["finish_reason"] == "stop"
    assert outcome_fields(UpstreamError("no")) == {"error": "no", "type": "status_exception"}


def test_of_a_long_stream_some_times_are_kept_and_all_are_counted() -> None:
    times = times_of(0.1, [(0.2, 2)] * (MAX_READS + 5), 0.3)
    assert (len(times.reads), len(times.chunks)) == (MAX_READS, MAX_READS)
    assert (times.read_count, times.chunk_count) == (MAX_READS + 5, 2 * MAX_READS + 10)
