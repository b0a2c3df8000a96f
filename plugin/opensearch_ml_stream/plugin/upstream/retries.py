"""Retries of provider calls: after which failures, how long apart, and for how long in all.

Only before the response is handed to the caller, so that no caller gets the beginning of a response twice.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from random import Random

from opensearch_ml_stream.connectors.client_config import ClientConfig
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.connectors.retry_after import wait_seconds
from opensearch_ml_stream.plugin.upstream import CircuitOpen, ReadTimedOut, Upstream, UpstreamResponse

MAX_BACKOFF_SECONDS = 20.0  # the AWS SDK's ceiling, which ML Commons' policies come from

_TRANSIENT_STATUSES = frozenset({429, 500, 502, 503, 504, 529})  # 529 is Anthropic's "overloaded"


def backoff_seconds(config: ClientConfig, attempt: int, random: Random) -> float:
    """Return the seconds to wait before retry number `attempt` (1 is the first)."""
    base = config.retry_backoff_millis / 1000
    if config.retry_backoff_policy == "constant":
        return base
    ceiling = min(base * 2.0 ** min(attempt - 1, 32), MAX_BACKOFF_SECONDS)
    if config.retry_backoff_policy == "exponential_equal_jitter":
        return ceiling / 2 + random.uniform(0, ceiling / 2)
    return random.uniform(0, ceiling)


@asynccontextmanager
async def open_with_retries(
    upstream: Upstream,
    request: ProviderRequest,
    config: ClientConfig,
    tls: Mapping[str, str],
    pool_key: str = "",
    random: Random | None = None,
) -> AsyncIterator[UpstreamResponse]:
    """Open a response by `upstream.open`, again after 429, 5xx and broken connections as `config` says.

    The outcome of the last attempt is the caller's: its response, whatever its status, or its error. A provider that
    was silent for `read_timeout` is not called again: it may be at work, and the work may be paid for.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + config.retry_timeout_seconds
    random = random or Random()
    attempt = 0
    while True:
        attempt += 1
        async with AsyncExitStack() as opened:
            wait = backoff_seconds(config, attempt, random)
            may_retry = config.max_retry_times < 0 or attempt <= config.max_retry_times
            try:
                response = await opened.enter_async_context(upstream.open(request, config, tls, pool_key))
            except (CircuitOpen, ReadTimedOut):
                raise
            except UpstreamError:
                if not may_retry or loop.time() + wait > deadline:
                    raise
            else:
                if response.status in _TRANSIENT_STATUSES:
                    retry_after = wait_seconds(response.headers, datetime.now(UTC))
                    wait = max(wait, retry_after or 0.0)
                else:
                    may_retry = False
                if not may_retry or loop.time() + wait > deadline:
                    del request  # a prompt may be large, and its response long
                    yield response
                    return
        await asyncio.sleep(wait)
