"""A stop of the sidecar: requests that have gone on to the cluster may end, within the grace time."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from integration_tests.front_door.scripted_cluster import OK, Connection, Script, body_of, header_lines, host
from integration_tests.support.conditions import eventually_async
from integration_tests.support.sidecars import Sidecar, running_sidecar

GET = b"GET /slow HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
_GONE = OK.replace(b"200 OK", b"404 Not Found")


class SlowCluster:
    """A cluster that responds to `/slow` once `goes_on` is set; `asked` when it has been asked for it."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.goes_on = asyncio.Event()

    async def play(self, connection: Connection) -> None:
        """Find nothing else."""
        while True:
            request, *_ = header_lines(await connection.head())
            if request.startswith("GET /slow"):
                self.asked.set()
                await self.goes_on.wait()
                await connection.send(OK)
            else:
                await connection.send(_GONE)


@asynccontextmanager
async def front_door(folder: Path, script: Script, grace: str) -> AsyncIterator[Sidecar]:
    settings = {"opensearch_ml_stream.security": "none", "opensearch_ml_stream.shutdown_grace_seconds": grace}
    async with host(script) as opensearch:
        opening = running_sidecar(folder, opensearch.url, settings, ("--pass-through",))
        sidecar = await asyncio.to_thread(opening.__enter__)
        try:
            yield sidecar
        finally:
            await asyncio.to_thread(opening.__exit__, None, None, None)


async def has_closed_its_port(sidecar: Sidecar) -> bool:
    """Whether it has been told to stop."""
    try:
        client = await connected(sidecar)
    except ConnectionError:
        return True
    client.reset()
    return False


async def connected(sidecar: Sidecar) -> Connection:
    return Connection(*await asyncio.open_connection("127.0.0.1", int(sidecar.url.rpartition(":")[2])))


async def slow_request(sidecar: Sidecar) -> Connection:
    client = await connected(sidecar)
    await client.send(GET)
    return client


@pytest.mark.parametrize(
    "seconds",
    [0, pytest.param(4, marks=pytest.mark.slow)],  # longer than a response may take that nothing waits for
)
async def test_a_request_that_has_gone_on_ends_before_the_sidecar_does(tmp_path: Path, seconds: float) -> None:
    cluster = SlowCluster()
    async with front_door(tmp_path, cluster.play, "60") as sidecar:
        client = await slow_request(sidecar)
        await cluster.asked.wait()
        sidecar.process.send_signal(signal.SIGTERM)
        await eventually_async(lambda: has_closed_its_port(sidecar))
        await asyncio.sleep(seconds)
        cluster.goes_on.set()
        await client.closed()
        assert client.received.startswith(b"HTTP/1.1 200 ")
        assert body_of(bytes(client.received)) == b"{}"
        client.reset()
        assert await asyncio.to_thread(sidecar.process.wait, 20) == 0


async def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    cluster = SlowCluster()
    async with front_door(tmp_path, cluster.play, "600") as sidecar:
        client = await slow_request(sidecar)
        await cluster.asked.wait()
        sidecar.process.send_signal(signal.SIGTERM)
        await eventually_async(lambda: has_closed_its_port(sidecar))  # two that come at once are one
        sidecar.process.send_signal(signal.SIGTERM)
        await client.closed()
        assert not client.received
        client.reset()
        await asyncio.to_thread(sidecar.process.wait, 30)
