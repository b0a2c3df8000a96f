"""One call of the client: its connection is kept or closed, and the limiter is released once."""

import asyncio
import gzip
from dataclasses import replace

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest, Throttled, UpstreamError
from opensearch_ml_stream.plugin.upstream import ReadTimedOut
from tests.upstream.scripted_upstream import (
    CONFIG,
    REQUEST,
    RESPONSE,
    SENT,
    STREAM,
    ScriptedUpstream,
    fetch,
)
from tests.upstream.virtual_time_loop import now, pending_timers


def in_use(upstream: ScriptedUpstream) -> tuple[int, int]:
    """Connections in use and idle ones."""
    return upstream.limiter.acquired("connector"), len(upstream.pool)


async def test_a_call_sends_the_request_and_gives_the_response() -> None:
    upstream = ScriptedUpstream([RESPONSE])
    async with upstream.open(REQUEST, CONFIG, {}, "connector") as response:
        assert (response.status, response.headers) == (200, {"content-length": "2"})
        assert in_use(upstream) == (1, 0)
        assert await response.read() == b"ok"
    assert upstream.transports[0].written == [SENT]
    assert in_use(upstream) == (0, 1)


async def test_a_connection_is_used_again_after_a_whole_response() -> None:
    upstream = ScriptedUpstream([RESPONSE, RESPONSE])
    assert [await fetch(upstream), await fetch(upstream)] == [b"ok", b"ok"]
    assert [transport.written for transport in upstream.transports] == [[SENT, SENT]]
    assert in_use(upstream) == (0, 1)


async def test_a_finished_call_leaves_no_timer_but_the_pools() -> None:
    upstream = ScriptedUpstream([RESPONSE])
    await fetch(upstream)
    assert pending_timers() == 1
    upstream.close()
    assert pending_timers() == 0


async def test_the_whole_body_counts_and_not_whether_it_was_read() -> None:
    upstream = ScriptedUpstream([RESPONSE, RESPONSE])
    async with upstream.open(REQUEST, CONFIG, {}, "connector"):
        pass
    assert in_use(upstream) == (0, 1)
    with pytest.raises(ZeroDivisionError):
        async with upstream.open(REQUEST, CONFIG, {}, "connector"):
            raise ZeroDivisionError
    assert in_use(upstream) == (0, 1)


async def test_a_connection_that_the_provider_closes_is_not_kept() -> None:
    upstream = ScriptedUpstream([RESPONSE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")])
    assert await fetch(upstream) == b"ok"
    assert upstream.transports[0].calls[-1] == "abort"
    assert in_use(upstream) == (0, 0)


async def test_connectors_share_no_connections() -> None:
    upstream = ScriptedUpstream([RESPONSE], [RESPONSE])
    await fetch(upstream)
    await fetch(upstream, pool_key="another")
    assert len(upstream.transports) == 2
    assert len(upstream.pool) == 2


async def test_calls_without_a_connector_have_a_limit_of_their_own() -> None:
    upstream = ScriptedUpstream([RESPONSE])
    async with upstream.open(REQUEST, CONFIG, {}):
        assert (upstream.limiter.acquired(""), upstream.limiter.acquired("connector")) == (1, 0)


async def test_hosts_share_no_connections_and_paths_do() -> None:
    upstream = ScriptedUpstream([RESPONSE, RESPONSE], [RESPONSE])
    for url in ("http://provider.example/a", "http://provider.example/b", "http://other.example/a"):
        await fetch(upstream, replace(REQUEST, url=url))
    assert [len(transport.written) for transport in upstream.transports] == [2, 1]


async def test_leaving_a_stream_by_an_error_closes_it_at_once() -> None:
    upstream = ScriptedUpstream([STREAM])
    with pytest.raises(ZeroDivisionError):
        async with upstream.open(REQUEST, CONFIG, {}, "connector") as response:
            await response.read()
            raise ZeroDivisionError
    assert upstream.transports[0].calls[-1] == "abort"
    assert in_use(upstream) == (0, 0)
    assert pending_timers() == 0


async def test_leaving_a_stream_with_unread_bytes_closes_it_at_once() -> None:
    upstream = ScriptedUpstream([STREAM])
    async with upstream.open(REQUEST, CONFIG, {}, "connector"):
        pass
    assert upstream.transports[0].calls[-1] == "abort"
    assert in_use(upstream) == (0, 0)


async def test_a_stream_whose_end_comes_soon_after_its_reader_has_left_keeps_its_connection() -> None:
    upstream = ScriptedUpstream([STREAM])
    async with upstream.open(REQUEST, CONFIG, {}, "connector") as response:
        assert await response.read() == b"[DONE]"
    assert in_use(upstream) == (1, 0)  # it still counts
    upstream.transports[0].receive(b"0\r\n\r\n")
    assert in_use(upstream) == (0, 1)
    assert "abort" not in upstream.transports[0].calls


async def test_a_stream_whose_end_does_not_come_soon_is_closed() -> None:
    upstream = ScriptedUpstream([STREAM])
    async with upstream.open(REQUEST, CONFIG, {}, "connector") as response:
        await response.read()
    await asyncio.sleep(0.049)
    assert in_use(upstream) == (1, 0)
    await asyncio.sleep(0.002)
    assert in_use(upstream) == (0, 0)
    assert upstream.transports[0].calls[-1] == "abort"


async def test_closing_the_client_waits_for_no_stream_whose_end_is_still_to_come() -> None:
    upstream = ScriptedUpstream([STREAM])
    async with upstream.open(REQUEST, CONFIG, {}, "connector") as response:
        await response.read()
    upstream.close()
    assert upstream.transports[0].calls[-1] == "abort"
    assert in_use(upstream) == (0, 0)
    assert pending_timers() == 0


async def test_a_call_that_cannot_connect_releases_the_limiter() -> None:
    upstream = ScriptedUpstream()
    with pytest.raises(UpstreamError, match="no connection"):
        await fetch(upstream)
    assert in_use(upstream) == (0, 0)


async def test_a_cancelled_call_closes_its_connection() -> None:
    upstream = ScriptedUpstream([])
    task = asyncio.create_task(fetch(upstream))
    await asyncio.sleep(1)
    assert in_use(upstream) == (1, 0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert upstream.transports[0].calls[-1] == "abort"
    assert in_use(upstream) == (0, 0)
    assert pending_timers() == 0


async def test_a_provider_is_given_its_read_timeout() -> None:
    upstream = ScriptedUpstream([])
    with pytest.raises(ReadTimedOut):
        await fetch(upstream)
    assert now() == CONFIG.read_timeout
    assert in_use(upstream) == (0, 0)


async def test_a_call_waits_for_a_free_connection_as_long_as_for_a_new_one() -> None:
    upstream = ScriptedUpstream([STREAM])
    config = replace(CONFIG, max_connection=1)
    async with upstream.open(REQUEST, config, {}, "connector"):
        with pytest.raises(Throttled):
            await fetch(upstream, config=config)
        assert now() == CONFIG.connection_timeout
        assert len(upstream.connects) == 1


async def test_a_call_that_waited_gets_the_connection_of_the_call_before() -> None:
    upstream = ScriptedUpstream([RESPONSE, RESPONSE])
    config = replace(CONFIG, max_connection=1)
    async with upstream.open(REQUEST, config, {}, "connector"):
        task = asyncio.create_task(fetch(upstream, config=config))
        await asyncio.sleep(1)
        assert not task.done()
    assert await task == b"ok"
    assert len(upstream.transports) == 1


async def test_a_compressed_body_is_decoded() -> None:
    packed = gzip.compress(b"text")
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed)
    upstream = ScriptedUpstream([head + packed])
    assert await fetch(upstream) == b"text"
    assert in_use(upstream) == (0, 1)


async def test_a_body_that_cannot_be_decoded_closes_the_connection() -> None:
    upstream = ScriptedUpstream([b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 1\r\n\r\n?"])
    with pytest.raises(UpstreamError, match=r"provider\.example:80 sent a body in content-encoding \[br\]"):
        await fetch(upstream)
    assert upstream.transports[0].calls[-1] == "abort"
    assert in_use(upstream) == (0, 0)


@pytest.mark.parametrize("url", ["ftp://provider.example/", "http://user@provider.example/"])
async def test_a_url_that_cannot_be_called_is_refused_before_anything_else(url: str) -> None:
    upstream = ScriptedUpstream([RESPONSE])
    with pytest.raises(InvalidRequest):
        upstream.open(replace(REQUEST, url=url), CONFIG, {}, "connector")
    assert in_use(upstream) == (0, 0)
