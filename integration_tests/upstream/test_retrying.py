"""A provider is called again only as the connector says, and never once its response has begun."""

from random import Random

import pytest
from integration_tests.support.fake_provider import Act, FakeProvider, Script, chunk, head, json_response
from integration_tests.upstream.calls import post, read_to_end

from opensearch_ml_stream.connectors.client_config import ClientConfig
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.plugin.upstream import ReadTimedOut, Upstream
from opensearch_ml_stream.plugin.upstream.retries import open_with_retries


def retrying(times: int, read_timeout: float = 20) -> ClientConfig:
    return ClientConfig(
        connection_timeout=10,
        read_timeout=read_timeout,
        max_retry_times=times,
        retry_timeout_seconds=60,
        retry_backoff_millis=10,
    )


async def call(upstream: Upstream, url: str, config: ClientConfig) -> tuple[int, bytes]:
    async with open_with_retries(upstream, post(url), config, {}, "connector", Random(1)) as response:
        return response.status, await read_to_end(response)


def failing(first: list[Script]) -> FakeProvider:
    """Plays the scripts one after the other, then responds well."""
    scripts = iter(first)
    return FakeProvider(lambda request: next(scripts, json_response("well")))


@pytest.mark.parametrize("bad", [json_response({}, 429), json_response({}, 503), json_response({}, 500), [Act.RESET]])
async def test_a_passing_fault_is_tried_again(upstream: Upstream, bad: Script) -> None:
    async with failing([bad, bad]) as provider:
        assert await call(upstream, provider.url, retrying(2)) == (200, b'"well"')
    assert len(provider.requests) == 3


async def test_no_retry_is_made_unless_the_connector_asks_for_it(upstream: Upstream) -> None:
    async with failing([json_response({}, 503)]) as provider:
        assert (await call(upstream, provider.url, retrying(0)))[0] == 503
    assert len(provider.requests) == 1


async def test_the_last_response_is_the_callers(upstream: Upstream) -> None:
    async with FakeProvider(json_response("busy", 429)) as provider:
        assert await call(upstream, provider.url, retrying(2)) == (429, b'"busy"')
    assert len(provider.requests) == 3


async def test_a_fault_of_the_request_is_not_tried_again(upstream: Upstream) -> None:
    async with failing([json_response("wrong", 400)]) as provider:
        assert await call(upstream, provider.url, retrying(3)) == (400, b'"wrong"')
    assert len(provider.requests) == 1


async def test_a_response_that_has_begun_is_never_requested_again(upstream: Upstream) -> None:
    broken: Script = [head(transfer_encoding="chunked") + chunk(b"data: 1\n\n"), Act.CLOSE]
    async with failing([broken]) as provider:
        with pytest.raises(UpstreamError, match="in the middle"):
            await call(upstream, provider.url, retrying(3))
    assert len(provider.requests) == 1


async def test_a_provider_that_stayed_silent_is_not_called_again(upstream: Upstream) -> None:
    async with failing([[Act.WAIT]]) as provider:
        with pytest.raises(ReadTimedOut):
            await call(upstream, provider.url, retrying(3, read_timeout=0.1))
    assert len(provider.requests) == 1
