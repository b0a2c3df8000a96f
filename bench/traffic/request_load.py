"""The load generator of whole requests: each connection asks again as soon as its response has come.

    python -m bench.traffic.request_load < plan.json        prints a report as JSON

Every body is checked: one that differs from the last right one is parsed, and must hold what the provider sent. A
response that comes in one piece and ends with a body already checked is not parsed, so that the load costs little.
"""

import asyncio
import json
import sys
import time
from array import array
from collections import Counter
from dataclasses import asdict, dataclass
from time import monotonic_ns
from typing import cast

import httptools
import uvloop

from bench.traffic.load import quantiles
from bench.traffic.whole_bodies import holds

_PAUSE_AFTER_ERROR_SECONDS = 0.05  # not to spin on a target that refuses


@dataclass(frozen=True, slots=True)
class RequestPlan:
    """`connections` at a time; `requests` in all, or as many as start within `seconds`.

    `what` names the response that is expected (see whole_bodies.py); `timeout` seconds is the whole load's.
    """

    port: int
    path: str
    body: str
    what: str
    connections: int
    requests: int = 0
    seconds: float = 0
    host: str = "127.0.0.1"
    timeout: float = 60

    def request(self) -> bytes:
        head = f"POST {self.path} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\nContent-Type: application/json\r\n"
        body = self.body.encode()
        return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


class RequestLoad:
    """Hands out requests to the connections until the plan is done, and counts what came of them."""

    def __init__(self, plan: RequestPlan) -> None:
        self.plan = plan
        self.request = plan.request()
        self.right = b"\0"  # the last body that was right; nothing ends with this one
        self.size = 0  # of the response that it came in
        self.done = 0
        self.took = array("q")  # nanoseconds
        self.errors: Counter[str] = Counter()
        self.over = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._ends = monotonic_ns() + int(plan.seconds * 1e9) if plan.seconds else sys.maxsize
        self._remaining = plan.requests or sys.maxsize
        self._open = plan.connections

    async def run(self) -> None:
        for _ in range(self.plan.connections):
            self.connect()
        try:
            async with asyncio.timeout(self.plan.timeout):
                await self.over.wait()
        except TimeoutError:
            self.errors["timeout"] += self._open

    def take(self, now: int) -> bool:
        """Counts one more request as started; false if the plan has no more."""
        if not self._remaining or now >= self._ends:
            return False
        self._remaining -= 1
        return True

    def connect(self) -> None:
        if self.take(monotonic_ns()):
            self._loop.create_task(self._connect())
        else:
            self.retire()

    def retire(self) -> None:
        self._open -= 1
        if not self._open:
            self.over.set()

    def fail(self, kind: str) -> None:
        self.errors[kind] += 1
        self._loop.call_later(_PAUSE_AFTER_ERROR_SECONDS, self.connect)

    async def _connect(self) -> None:
        try:
            await self._loop.create_connection(lambda: Client(self), self.plan.host, self.plan.port)
        except OSError as error:
            self.fail(f"cannot connect: {error.strerror}")


class Client(asyncio.Protocol):
    """One connection, one request after the other."""

    transport: asyncio.Transport

    def __init__(self, load: RequestLoad) -> None:
        self._load = load
        self._parser = httptools.HttpResponseParser(self)
        self._parts: list[bytes] = []
        self._size = 0  # of the response so far
        self._over = False  # nothing that still happens here counts

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is not registered as one
        self._began = monotonic_ns()
        self.transport.write(self._load.request)

    def data_received(self, data: bytes) -> None:
        load = self._load
        if not self._size and len(data) == load.size and data.endswith(load.right) and data.startswith(b"HTTP/1.1 200"):
            self._go_on()
            return
        self._size += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._fail("not HTTP")

    def connection_lost(self, error: Exception | None) -> None:
        if not self._over:
            self._fail("connection closed early")

    def on_body(self, body: bytes) -> None:
        self._parts.append(body)

    def on_message_complete(self) -> None:
        if self._over:
            return
        load, status, body = self._load, self._parser.get_status_code(), b"".join(self._parts)
        if status != 200:
            self._fail(f"status {status}")
            return
        if body != load.right:
            if not holds(load.plan.what, body):
                self._fail("wrong body")
                return
            load.right = body
        load.size = self._size
        self._parts.clear()
        self._size = 0
        if self._parser.should_keep_alive():
            self._go_on()
        else:
            self._count(monotonic_ns())
            self._close()
            load.connect()

    def _go_on(self) -> None:
        now = monotonic_ns()
        self._count(now)
        if self._load.take(now):
            self._began = now
            self.transport.write(self._load.request)
        else:
            self._close()
            self._load.retire()

    def _count(self, now: int) -> None:
        self._load.done += 1
        self._load.took.append(now - self._began)

    def _close(self) -> None:
        self._over = True
        self.transport.close()

    def _fail(self, kind: str) -> None:
        self._over = True
        self.transport.abort()
        self._load.fail(kind)


async def measure(plan: RequestPlan) -> dict[str, object]:
    """The report: `requests` with right responses, `took_ms` quantiles, `errors` by kind, own `cpu_seconds`."""
    began, cpu = time.monotonic(), time.process_time()
    load = RequestLoad(plan)
    await load.run()
    return {
        "seconds": time.monotonic() - began,
        "requests": load.done,
        "took_ms": quantiles(load.took),
        "errors": dict(load.errors),
        "cpu_seconds": time.process_time() - cpu,
    }


def as_json(plan: RequestPlan) -> str:
    return json.dumps(asdict(plan))


if __name__ == "__main__":
    sys.stdout.write(json.dumps(uvloop.run(measure(RequestPlan(**json.load(sys.stdin))))))
