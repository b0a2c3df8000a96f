"""A provider is called again only as the connector says, and never once its answer has begun."""

import asyncio
from random import Random

import pytest
from integration_tests.support.fake_provider import Act, FakeProvider, Request, Script, chunk, head, json_answer
from integration_tests.upstream.calls import post, read_to_end

from opensearch_ml_stream.connectors.documents import ClientConfig
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.plugin.upstream import ReadTimedOut, Upstream
from opensearch_ml_stream.plugin.upstream.retries import open_with_retries


def retrying(times: int, seconds: float = 2, read_timeout: float = 2, millis: int = 10) -> ClientConfig:
    return ClientConfig(
        connection_timeout=2,
        read_timeout=read_timeout,
        max_retry_times=times,
        retry_timeout_seconds=seconds,
        retry_backoff_millis=millis,
    )


async def call(upstream: Upstream, url: str, config: ClientConfig) -> tuple[int, bytes]:
    async with open_with_retries(upstream, post(url), config, {}, "connector", Random(1)) as response:
        return response.status, await read_to_end(response)


def failing(first: list[Script]) -> FakeProvider:
    """Plays the scripts one after the other, then answers well."""
    scripts = iter(first)
    return FakeProvider(lambda request: next(scripts, json_answer("well")))


@pytest.mark.parametrize("bad", [json_answer({}, 429), json_answer({}, 503), json_answer({}, 500), [Act.RESET]])
async def test_a_passing_fault_is_tried_again(native: Upstream, bad: Script) -> None:
    async with failing([bad, bad]) as provider:
        assert await call(native, provider.url, retrying(2)) == (200, b'"well"')
    assert len(provider.requests) == 3


async def test_no_retry_is_made_unless_the_connector_asks_for_it(native: Upstream) -> None:
    async with failing([json_answer({}, 503)]) as provider:
        assert (await call(native, provider.url, retrying(0)))[0] == 503
    assert len(provider.requests) == 1


async def test_the_last_answer_is_the_callers(native: Upstream) -> None:
    async with FakeProvider(json_answer("busy", 429)) as provider:
        assert await call(native, provider.url, retrying(2)) == (429, b'"busy"')
    assert len(provider.requests) == 3


async def test_a_fault_of_the_request_is_not_tried_again(native: Upstream) -> None:
    async with failing([json_answer("wrong", 400)]) as provider:
        assert await call(native, provider.url, retrying(3)) == (400, b'"wrong"')
    assert len(provider.requests) == 1


async def test_an_answer_that_has_begun_is_never_asked_for_again(native: Upstream) -> None:
    broken: Script = [head(transfer_encoding="chunked") + chunk(b"data: 1\n\n"), Act.RESET]
    async with failing([broken]) as provider:
        with pytest.raises(UpstreamError, match="in the middle"):
            await call(native, provider.url, retrying(3))
    assert len(provider.requests) == 1


async def test_a_provider_that_stayed_silent_is_not_asked_again(native: Upstream) -> None:
    async with failing([[Act.WAIT]]) as provider:
        with pytest.raises(ReadTimedOut):
            await call(native, provider.url, retrying(3, read_timeout=0.1))
    assert len(provider.requests) == 1


async def test_retry_after_is_waited_for(native: Upstream) -> None:
    async with failing([json_answer({}, 429, retry_after="1")]) as provider:
        began = asyncio.get_running_loop().time()
        assert await call(native, provider.url, retrying(1, seconds=3)) == (200, b'"well"')
        assert 0.95 < asyncio.get_running_loop().time() - began < 1.5


async def test_a_retry_that_would_come_too_late_is_not_waited_for(native: Upstream) -> None:
    async with FakeProvider(json_answer({}, 429, retry_after="60")) as provider:
        began = asyncio.get_running_loop().time()
        assert (await call(native, provider.url, retrying(-1, seconds=2)))[0] == 429
        assert asyncio.get_running_loop().time() - began < 0.5


async def test_unlimited_retries_end_with_their_time(native: Upstream) -> None:
    seen: list[Request] = []

    def script(request: Request) -> Script:
        seen.append(request)
        return json_answer({}, 503)

    async with FakeProvider(script) as provider:
        began = asyncio.get_running_loop().time()
        assert (await call(native, provider.url, retrying(-1, seconds=0.3, millis=50)))[0] == 503
        assert 0.2 < asyncio.get_running_loop().time() - began < 0.6
    assert 4 <= len(seen) <= 7
