"""The scenarios that are measured, each by its load; they run in this order on a system started afresh.

first: time to the first token of one stream at a time. open: memory of 2,000 open streams, and the time added to their
tokens. paced: CPU for tokens at a model's pace. bulk: CPU for tokens as fast as they go. many: time added per token at
500 streams. cancel: chunks that are sent on after a client has disconnected.
"""

from dataclasses import dataclass, replace

from bench.traffic.stream_plan import StreamPlan

TOKEN_SECONDS = 0.02  # 50 tokens a second


@dataclass(frozen=True, slots=True)
class Scenario:
    """A load of streams like `stream`; the other fields are those of LoadPlan."""

    name: str
    stream: StreamPlan
    connections: int
    streams: int = 0
    seconds: float = 0
    ramp: float = 0
    cancel_after: int = 0


FIRST = Scenario("first", StreamPlan(1), 1, streams=150)
# Before the scenarios after which freed memory stays with the process: it would hide what these streams take.
OPEN = Scenario("open", StreamPlan(12, 0.4), 2000, streams=2000, ramp=2)
PACED = Scenario("paced", StreamPlan(200, TOKEN_SECONDS), 200, streams=200, ramp=0.5)
BULK = Scenario("bulk", StreamPlan(200), 64, seconds=5)
MANY = Scenario("many", StreamPlan(200, TOKEN_SECONDS), 500, streams=500, ramp=1)
CANCEL = Scenario("cancel", StreamPlan(500, 0.005), 32, seconds=4, cancel_after=10)

STANDARD = (FIRST, OPEN, PACED, BULK, MANY, CANCEL)

QUICK = (
    replace(FIRST, streams=60),
    replace(PACED, stream=StreamPlan(100, TOKEN_SECONDS)),
    replace(BULK, seconds=1.5),
    replace(MANY, stream=StreamPlan(75, TOKEN_SECONDS), ramp=0.5),
    replace(CANCEL, seconds=1),
)

# 5,000 chunks a second in all, from 100 or from 2,000 streams at a time; and bodies of unusual shapes.
FEW_STREAMS = Scenario("100 streams", StreamPlan(100, TOKEN_SECONDS), 100, streams=1000, ramp=0.5)
MANY_STREAMS = Scenario("2,000 streams", StreamPlan(100, 20 * TOKEN_SECONDS), 2000, streams=2000, ramp=4)
NORMAL = Scenario("200 chunks", StreamPlan(200), 1, streams=1000)
LONG = Scenario("200,000 chunks", StreamPlan(200_000), 1, streams=1)
BIG = Scenario("1 MiB in one chunk", StreamPlan(1, text=2**20), 1, streams=150)
HALF_BIG = Scenario("64 KiB in one chunk", StreamPlan(1, text=2**16), 1, streams=2400)
BYTEWISE = Scenario("1 byte a write", StreamPlan(200, piece=1), 1, streams=12)
BYTEWISE_LONG = Scenario("1 byte a write, long", StreamPlan(2400, piece=1), 1, streams=1)

# 50 tokens of 4 characters a second, in chunks of 32: the 256 characters that a guardrail holds back are then whole
# chunks, so that no marker is cut in two.
GUARDED = Scenario("guardrails", StreamPlan(60, 0.16, text=32), 200, streams=200, ramp=1)

# 10,000 chunks a second, as PACED, in streams of a short answer.
SHORT = Scenario("short", StreamPlan(12, TOKEN_SECONDS), 200, seconds=4, ramp=0.5)

WORKER = replace(MANY, name="worker", connections=250, streams=250)  # for each worker
MANAGEMENT = replace(MANY, name="management", stream=StreamPlan(150, TOKEN_SECONDS))
