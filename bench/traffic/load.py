"""The load generator: opens streams, measures the time of each chunk, checks that each stream is whole and in order.

    python -m bench.traffic.load < plan.json        prints a report as JSON

Chunks are recognised by the markers in the body's bytes, without parsing what a system made of them: the same work for
every system.
"""

import asyncio
import json
import random
import sys
import time
import zlib
from array import array
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from time import monotonic_ns
from typing import cast

import httptools
import uvloop

from bench.traffic.stream_plan import MARKER, MARKER_LENGTH

_TAIL = 256  # bytes at a body's end that `done` must be in
_PAUSE_AFTER_ERROR_SECONDS = 0.05  # not to spin on a target that refuses


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """`connections` at a time, opened over `ramp` seconds; `streams` in all, or as many as start within `seconds`.

    `chunks` is what a whole stream has; `cancel_after` so many the connection is closed (0: never). `done` is text
    that every whole body ends with. `timeout` seconds is the whole load's. `headers` are lines of each request's head.
    With `repeats_text` the markers after the last chunk's are not looked at.
    """

    host: str
    port: int
    path: str
    body: str
    done: str
    chunks: int
    connections: int
    streams: int = 0
    seconds: float = 0
    ramp: float = 0
    cancel_after: int = 0
    timeout: float = 150
    headers: str = ""
    repeats_text: bool = False

    def request(self) -> bytes:
        head = f"POST {self.path} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\nContent-Type: application/json\r\n"
        return f"{head}{self.headers}Content-Length: {len(self.body)}\r\n\r\n{self.body}".encode()


@dataclass(slots=True)
class Tally:
    """What was received: counts, the times to first chunks and the times added to each, in nanoseconds."""

    streams: int = 0
    cancelled: int = 0
    chunks: int = 0
    first: "array[int]" = field(default_factory=lambda: array("q"))
    added: "array[int]" = field(default_factory=lambda: array("q"))
    errors: Counter[str] = field(default_factory=Counter)


class Connections:
    """Hands out `most` requests, or as many as start within `seconds`, to `number` connections."""

    def __init__(
        self, address: tuple[str, int], number: int, most: int, seconds: float, new: Callable[[], asyncio.Protocol]
    ) -> None:
        self.errors: Counter[str] = Counter()
        self.over = asyncio.Event()
        self._address = address
        self._new = new
        self._loop = asyncio.get_running_loop()
        self._ends = time.monotonic() + seconds if seconds else float("inf")
        self._remaining = most or sys.maxsize
        self._number = self._open = number

    async def run(self, seconds: float, ramp: float = 0) -> None:
        """Opens the connections over `ramp` seconds; returns when all of them are done, or after `seconds`."""
        for number in range(self._number):
            self._loop.call_later(ramp * number / self._number, self.connect)
        try:
            async with asyncio.timeout(seconds):
                await self.over.wait()
        except TimeoutError:
            self.errors["timeout"] += self._open

    def take(self) -> bool:
        """Counts one more request as started; false if the plan has no more."""
        if not self._remaining or time.monotonic() >= self._ends:
            return False
        self._remaining -= 1
        return True

    def connect(self) -> None:
        if self.take():
            self._loop.create_task(self._connect())
        else:
            self.retire()

    def retire(self) -> None:
        self._open -= 1
        if not self._open:
            self.over.set()

    def fail(self, kind: str) -> None:
        self.errors[kind] += 1
        self._loop.call_later(_PAUSE_AFTER_ERROR_SECONDS * random.random(), self.connect)

    async def _connect(self) -> None:
        try:
            await self._loop.create_connection(self._new, *self._address)
        except OSError as error:
            self.fail(f"cannot connect: {error.strerror}")


class Connection(asyncio.Protocol):
    """One connection, one request after the other."""

    transport: asyncio.Transport

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._parser = httptools.HttpResponseParser(self)
        self._over = False  # nothing that still happens here counts

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is not registered as one
        self._begin()

    def connection_lost(self, error: Exception | None) -> None:
        if not self._over:
            self._fail("connection closed early")

    def _begin(self) -> None:
        """Sends a request."""
        raise NotImplementedError

    def _parse(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._fail("not HTTP")

    def _go_on(self) -> None:
        """Sends the next request of the plan, on this connection if it may."""
        if not self._parser.should_keep_alive():
            self._close()
            self._connections.connect()
        else:
            self._ask_again()

    def _ask_again(self) -> None:
        if self._connections.take():
            self._begin()
        else:
            self._close()
            self._connections.retire()

    def _close(self) -> None:
        self._over = True
        self.transport.close()

    def _fail(self, kind: str) -> None:
        self._over = True
        self.transport.abort()
        self._connections.fail(kind)


class Load(Connections):
    """The streams of a plan."""

    def __init__(self, plan: LoadPlan) -> None:
        self.plan = plan
        self.tally = Tally()
        self.request = plan.request()
        self.done = plan.done.encode()
        self.whole_at = plan.chunks if plan.repeats_text else -1
        address = plan.host, plan.port
        super().__init__(address, plan.connections, plan.streams, plan.seconds, lambda: Stream(self))


class Stream(Connection):
    """One connection, one stream after the other."""

    def __init__(self, load: Load) -> None:
        super().__init__(load)
        self._load = load
        self._tally = load.tally

    def _begin(self) -> None:
        self._next = 0
        self._carry = b""  # a marker that is not whole yet
        self._tail = b""
        self._unzip: Callable[[bytes], bytes] | None = None
        self._began = monotonic_ns()
        self.transport.write(self._load.request)

    def data_received(self, data: bytes) -> None:
        self._now = monotonic_ns()
        self._parse(data)

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"content-encoding" and value == b"gzip":
            self._unzip = zlib.decompressobj(16 + zlib.MAX_WBITS).decompress

    def on_body(self, body: bytes) -> None:
        if self._over:
            return
        if self._unzip is not None:
            body = self._unzip(body)
        data = self._carry + body if self._carry else body
        end, expected = 0, self._next
        for match in MARKER.finditer(data):
            end = match.end()
            if expected == self._load.whole_at:
                break
            if int(match[1]) != expected:
                self._fail("chunks out of order")
                return
            if not expected:
                self._tally.first.append(self._now - self._began)
            expected += 1
            self._tally.added.append(self._now - int(match[2]))
        self._tally.chunks += expected - self._next
        self._next = expected
        start = data.rfind(b"~", max(end, len(data) - MARKER_LENGTH))
        self._carry = data[start:] if start >= 0 else b""
        self._tail = body if len(body) >= _TAIL else self._tail[-_TAIL:] + body
        if 0 < self._load.plan.cancel_after <= expected:
            self._tally.cancelled += 1
            self._over = True
            self.transport.abort()
            self._load.connect()

    def on_message_complete(self) -> None:
        if self._over:
            return
        status = self._parser.get_status_code()
        if status != 200:
            self._fail(f"status {status}")
        elif self._next != self._load.plan.chunks:
            self._fail("chunks missing")
        elif self._load.done not in self._tail:
            self._fail("end not marked")
        else:
            self._tally.streams += 1
            self._go_on()


def quantiles(times: "array[int]") -> dict[str, float]:
    """p50, p95, p99 and the longest in milliseconds, of times in nanoseconds; empty if there are none."""
    if not times:
        return {}
    ordered = sorted(times)
    last = len(ordered) - 1
    values = {f"p{share}": ordered[round(last * share / 100)] / 1e6 for share in (50, 95, 99)}
    return {**values, "max": ordered[-1] / 1e6}


async def measure(plan: LoadPlan) -> dict[str, object]:
    """The report: counts, `first_ms` and `added_ms` quantiles, `errors` by kind, own `cpu_seconds`."""
    began, cpu = time.monotonic(), time.process_time()
    load = Load(plan)
    await load.run(plan.timeout, plan.ramp)
    seconds, cpu = time.monotonic() - began, time.process_time() - cpu
    tally = load.tally
    return {
        "seconds": seconds,
        "streams": tally.streams,
        "cancelled": tally.cancelled,
        "chunks": tally.chunks,
        "first_ms": quantiles(tally.first),
        "added_ms": quantiles(tally.added),
        "errors": dict(load.errors),
        "cpu_seconds": cpu,
    }


def as_json(plan: LoadPlan) -> str:
    return json.dumps(asdict(plan))


if __name__ == "__main__":
    sys.stdout.write(json.dumps(uvloop.run(measure(LoadPlan(**json.load(sys.stdin))))))
