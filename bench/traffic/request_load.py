"""The load generator of whole requests: each connection asks again as soon as its response has come.

    python -m bench.traffic.request_load < plan.json        prints a report as JSON

Every body is checked: one that differs from the last right one is parsed, and must hold what the provider sent. A
response that comes in one piece and ends with a body already checked is not parsed, so that the load costs little.
"""

import json
import sys
import time
from array import array
from dataclasses import asdict, dataclass
from time import monotonic_ns

import uvloop

from bench.traffic.load import Connection, Connections, quantiles
from bench.traffic.whole_bodies import holds


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


class RequestLoad(Connections):
    """The requests of a plan, and what came of them."""

    def __init__(self, plan: RequestPlan) -> None:
        self.plan = plan
        self.request = plan.request()
        self.right = b"\0"  # the last body that was right; nothing ends with this one
        self.size = 0  # of the response that it came in
        self.done = 0
        self.took = array("q")  # nanoseconds
        address = plan.host, plan.port
        super().__init__(address, plan.connections, plan.requests, plan.seconds, lambda: Client(self))


class Client(Connection):
    """One connection, one request after the other."""

    def __init__(self, load: RequestLoad) -> None:
        super().__init__(load)
        self._load = load
        self._parts: list[bytes] = []
        self._size = 0  # of the response so far

    def _begin(self) -> None:
        self._began = monotonic_ns()
        self.transport.write(self._load.request)

    def data_received(self, data: bytes) -> None:
        load = self._load
        if not self._size and len(data) == load.size and data.endswith(load.right) and data.startswith(b"HTTP/1.1 200"):
            self._count()
            self._ask_again()
            return
        self._size += len(data)
        self._parse(data)

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
        self._count()
        self._go_on()

    def _count(self) -> None:
        self._load.done += 1
        self._load.took.append(monotonic_ns() - self._began)


async def measure(plan: RequestPlan) -> dict[str, object]:
    """The report: `requests` with right responses, `took_ms` quantiles, `errors` by kind, own `cpu_seconds`."""
    began, cpu = time.monotonic(), time.process_time()
    load = RequestLoad(plan)
    await load.run(plan.timeout)
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
