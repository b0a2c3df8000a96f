"""The scripted provider leaves no connection open, whenever a test is over."""

import asyncio
import gc
import socket
import ssl
import warnings

import pytest
from integration_tests.support.fake_provider import FakeProvider


@pytest.mark.parametrize("turns", range(6))
@pytest.mark.parametrize("tls", [None, ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)], ids=["plain", "TLS"])
def test_a_connection_that_is_being_accepted_is_closed_with_the_others(turns: int, tls: ssl.SSLContext | None) -> None:
    async def connect_and_end() -> socket.socket:
        async with FakeProvider([], tls) as provider:
            client = socket.create_connection(("127.0.0.1", provider.port))
            for _ in range(turns):
                await asyncio.sleep(0)
        return client

    loop = asyncio.new_event_loop()
    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always")
        loop.run_until_complete(connect_and_end()).close()
        loop.close()
        gc.collect()
    assert [str(warning.message) for warning in noted] == []
