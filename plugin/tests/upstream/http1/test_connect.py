"""A connection goes to the first address that accepts, within the time that it may take."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.plugin.upstream.http1.connection import Connection, connect, open_tcp
from tests.upstream.fake_transport import FakeTransport
from tests.upstream.virtual_time_loop import now

AUTHORITY, OPEN = "provider.example:8443", partial(open_tcp, 8443)
FIRST, SECOND, THIRD = "192.0.2.1", "192.0.2.2", "192.0.2.3"


class FakeNetwork:
    """Stands in for the loop's `create_connection`: an address refuses, hangs, or accepts."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **hosts: OSError | None) -> None:
        self.calls: list[tuple[str, int, dict[str, Any]]] = []
        self.transports: list[FakeTransport] = []
        self._hosts = hosts
        monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", self._create_connection)

    async def _create_connection(
        self, factory: Callable[[], Connection], address: str, port: int, **options: Any
    ) -> tuple[FakeTransport, Connection]:
        self.calls.append((address, port, options))
        outcome = self._hosts.get(address, "hangs")
        if isinstance(outcome, OSError):
            raise outcome
        connection = factory()
        transport = FakeTransport(connection)
        self.transports.append(transport)
        connection.connection_made(transport)
        if outcome == "hangs":  # in the TLS handshake
            await asyncio.sleep(1000)
        return transport, connection


async def test_the_first_address_that_accepts_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    network = FakeNetwork(monkeypatch, **{FIRST: None, SECOND: None})
    connection = await connect((FIRST, SECOND), AUTHORITY, OPEN, 10)
    assert connection.address == FIRST
    assert connection.transport is network.transports[0]
    assert network.calls == [(FIRST, 8443, {})]


async def test_the_next_address_is_tried_when_one_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    network = FakeNetwork(monkeypatch, **{FIRST: ConnectionRefusedError(111, "refused"), SECOND: None})
    connection = await connect((FIRST, SECOND), AUTHORITY, OPEN, 10)
    assert connection.address == SECOND
    assert [address for address, *_ in network.calls] == [FIRST, SECOND]


async def test_an_address_that_hangs_has_its_share_of_the_time_only(monkeypatch: pytest.MonkeyPatch) -> None:
    network = FakeNetwork(monkeypatch, **{THIRD: None})
    connection = await connect((FIRST, SECOND, THIRD), AUTHORITY, OPEN, 12)
    assert (connection.address, now()) == (THIRD, 8)
    assert [transport.calls for transport in network.transports] == [["abort"], ["abort"], []]


async def test_an_address_may_use_the_time_that_others_have_left(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeNetwork(monkeypatch, **{FIRST: ConnectionRefusedError(111, "refused")})
    with pytest.raises(UpstreamError, match="Connection refused"):
        await connect((FIRST, SECOND), AUTHORITY, OPEN, 12)
    assert now() == 12


async def test_when_none_accepts_in_time_the_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeNetwork(monkeypatch)
    with pytest.raises(UpstreamError) as raised:
        await connect((FIRST, SECOND), AUTHORITY, OPEN, 10)
    assert now() == 10
    assert raised.value.reason == (
        "Error communicating with remote model: Connect timeout: no connection to provider.example:8443 within 10 s. "
        "Check that the host is reachable from here, or raise connection_timeout in the connector's client_config"
    )


async def test_when_all_refuse_the_last_error_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeNetwork(monkeypatch, **{FIRST: ConnectionRefusedError(111, "refused"), SECOND: OSError(113, "no route")})
    with pytest.raises(UpstreamError, match=r"No route to host: provider\.example:8443"):
        await connect((FIRST, SECOND), AUTHORITY, OPEN, 10)


async def test_a_cancelled_connect_closes_its_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    network = FakeNetwork(monkeypatch)
    task = asyncio.create_task(connect((FIRST, SECOND), AUTHORITY, OPEN, 10))
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [transport.calls for transport in network.transports] == [["abort"]]
    assert len(network.calls) == 1
