"""The times of a model's limits on the aiohttp client, as on the native one."""

import asyncio

import aiohttp
import pytest

from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.plugin.upstream import ReadTimedOut
from tests.upstream.fake_aiohttp import SILENCE, FakeResponse, FakeSession, get, upstream_over
from tests.upstream.scripted_upstream import CONFIG
from tests.upstream.virtual_time_loop import now


async def test_silence_is_limited_if_its_limit_is_less_than_the_read_timeout() -> None:
    upstream = upstream_over(FakeSession(FakeResponse(b"one", SILENCE)))
    async with upstream.open(get(), CONFIG, {}) as response:
        response.limit_silence(2)
        assert await response.read() == b"one"
        with pytest.raises(ReadTimedOut, match=r"8\.8\.8\.8:80 sent nothing for 2 s in the middle of its response"):
            await response.read()
    assert now() == 2


async def test_the_read_timeout_counts_if_it_is_less_than_the_limit() -> None:
    upstream = upstream_over(FakeSession(FakeResponse(TimeoutError())))
    async with upstream.open(get(), CONFIG, {}) as response:
        response.limit_silence(40)
        with pytest.raises(ReadTimedOut, match=r"sent nothing for 30 s\. Raise read_timeout"):
            await response.read()


async def test_a_response_that_is_failed_is_closed_and_raises_that_error() -> None:
    fake = FakeResponse(SILENCE)
    async with upstream_over(FakeSession(fake)).open(get(), CONFIG, {}) as response:
        response.fail(UpstreamError("enough"))
        assert fake.closed
        for _ in range(2):
            with pytest.raises(UpstreamError, match=r"^enough$"):
                await response.read()


async def test_a_response_that_fails_while_it_is_read_raises_that_error() -> None:
    fake = FakeResponse(aiohttp.ClientConnectionError("Connection closed"))
    async with upstream_over(FakeSession(fake)).open(get(), CONFIG, {}) as response:
        asyncio.get_running_loop().call_soon(response.fail, UpstreamError("enough"))
        task = asyncio.create_task(response.read())
        with pytest.raises(UpstreamError, match=r"^enough$"):
            await task


async def test_a_whole_response_is_not_failed() -> None:
    fake = FakeResponse()
    async with upstream_over(FakeSession(fake)).open(get(), CONFIG, {}) as response:
        response.fail(UpstreamError("enough"))
        assert not fake.closed
        assert await response.read() == b""
