"""A replayed recording as an ASGI application, with the messages of a server in memory."""

import asyncio
from typing import Any

from opensearch_ml_stream.extensions.doctor.cli.replay_provider import ReplayProvider
from opensearch_ml_stream.extensions.doctor.diagnosis.recording import Read, Recording

HEADERS = (("content-type", "text/event-stream"),)
READS = (Read(10.0, b"data: a\n\n"), Read(30.0, b"data: b\n\n"))
COMPLETE = Recording(200, HEADERS, READS, "complete", 40.0)
BROKEN = Recording(200, HEADERS, READS[:1], "broken", 20.0)


class Connection:
    """A client that sends a request, and disconnects when told to; `sent` is what it gets."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.disconnected = asyncio.Event()
        self._request = [
            {"type": "http.request", "body": b"{", "more_body": True},
            {"type": "http.request", "body": b"}"},
        ]

    async def receive(self) -> Any:
        if self._request:
            return self._request.pop(0)
        await self.disconnected.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.sent.append(message)

    async def call(self, provider: ReplayProvider, method: str = "POST") -> list[dict[str, Any]]:
        await provider({"type": "http", "method": method}, self.receive, self.send)
        return self.sent


def bodies(sent: list[dict[str, Any]]) -> list[tuple[bytes, bool]]:
    return [(message["body"], message.get("more_body", False)) for message in sent[1:]]


async def test_each_read_is_a_write_behind_the_recorded_head() -> None:
    sent = await Connection().call(ReplayProvider(COMPLETE, speed=0))
    assert sent[0] == {
        "type": "http.response.start",
        "status": 200,
        "headers": [(b"content-type", b"text/event-stream")],
    }
    assert bodies(sent) == [(b"data: a\n\n", True), (b"data: b\n\n", True), (b"", False)]


async def test_a_broken_end_leaves_the_body_without_its_last_part() -> None:
    assert bodies(await Connection().call(ReplayProvider(BROKEN, speed=0))) == [(b"data: a\n\n", True)]


async def test_an_error_without_a_body_is_played_too() -> None:
    sent = await Connection().call(ReplayProvider(Recording(503, (), (), "complete", 5.0), speed=0))
    assert (sent[0]["status"], bodies(sent)) == (503, [(b"", False)])


async def test_the_recorded_times_are_waited_for_divided_by_the_speed() -> None:
    clock = asyncio.get_running_loop().time
    started = clock()
    await Connection().call(ReplayProvider(COMPLETE, speed=0.5))
    assert clock() - started >= 0.08
    assert bodies(await Connection().call(ReplayProvider(COMPLETE, speed=1e9))) != []


async def test_a_client_that_disconnects_ends_the_play() -> None:
    connection = Connection()
    connection.disconnected.set()
    late = Recording(200, HEADERS, (Read(3_600_000.0, b"late"),), "complete", 3_600_000.0)
    assert await connection.call(ReplayProvider(late)) == []


async def test_other_methods_are_refused() -> None:
    sent = await Connection().call(ReplayProvider(COMPLETE), "GET")
    assert (sent[0]["status"], bodies(sent)) == (
        405,
        [(b'{"error": "A replayed recording responds to POST only"}', False)],
    )
