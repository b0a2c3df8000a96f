"""Provider calls behind a circuit breaker: what counts as a failure, and what a caller is told."""

import asyncio
import errno
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from opensearch_ml_stream.connectors.client_config import ClientConfig
from opensearch_ml_stream.connectors.errors import InvalidRequest, Throttled, UpstreamError
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.plugin.settings import LiveSettings, Settings
from opensearch_ml_stream.plugin.upstream import CircuitOpen, ReadTimedOut, UpstreamResponse
from opensearch_ml_stream.plugin.upstream.circuit_breaker import BreakingUpstream, SharedBreakers
from opensearch_ml_stream.plugin.upstream.network_errors import unreachable
from opensearch_ml_stream.plugin.upstream.retries import open_with_retries
from tests.upstream.scripted_upstream import CONFIG, REQUEST


class Response:
    def __init__(self, status: int) -> None:
        self.status = status
        self.headers: Mapping[str, str] = {}

    async def read(self) -> bytes:
        return b""

    async def pump(self, sink: Any) -> bool:
        return True

    def limit_silence(self, seconds: float) -> None:
        pass

    def fail(self, error: UpstreamError) -> None:
        pass


class Provider:
    """Responds with a status, or fails with an error, as `outcome` says."""

    def __init__(self, outcome: int | BaseException) -> None:
        self.outcome = outcome
        self.calls = 0

    @asynccontextmanager
    async def open(
        self, request: ProviderRequest, config: ClientConfig, tls: Mapping[str, str], pool_key: str = ""
    ) -> AsyncIterator[UpstreamResponse]:
        self.calls += 1
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        yield Response(self.outcome)


class Setup:
    def __init__(self, folder: Path, outcome: int | BaseException) -> None:
        self.live = LiveSettings(Settings(circuit_breaker_failures=2, circuit_breaker_seconds=5))
        self.now = 100.0
        self.breakers = SharedBreakers(folder, lambda: self.now)
        self.provider = Provider(outcome)
        self.changes: list[tuple[str, str]] = []
        self.upstream = BreakingUpstream(
            self.provider, self.breakers, self.live, lambda key, state: self.changes.append((key, state))
        )

    async def call(self, key: str = "c") -> int:
        async with self.upstream.open(REQUEST, CONFIG, {}, key) as response:
            return response.status

    async def call_twice(self) -> None:
        for _ in range(2):
            try:
                await self.call()
            except (UpstreamError, InvalidRequest, Throttled, asyncio.CancelledError) as error:
                assert error is self.provider.outcome


@pytest.mark.parametrize("outcome", [500, 503, 529, UpstreamError("refused"), ReadTimedOut("silent")])
async def test_a_provider_that_is_down_or_overloaded_is_left_alone(
    tmp_path: Path, outcome: int | Exception, caplog: pytest.LogCaptureFixture
) -> None:
    setup = Setup(tmp_path, outcome)
    with closing(setup.breakers), caplog.at_level(logging.INFO):
        await setup.call_twice()
        with pytest.raises(CircuitOpen, match="connector c failed again and again; it is called again in 5 s") as found:
            await setup.call()
        assert (setup.provider.calls, found.value.status, found.value.retry_after) == (2, 424, "5")
        assert setup.changes == [("c", "opened")]
        setup.now += 5
        setup.provider.outcome = 200
        assert await setup.call() == 200
        assert setup.changes == [("c", "opened"), ("c", "closed")]
        assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]


@pytest.mark.parametrize(
    "outcome",
    [
        200,
        400,
        401,
        404,
        429,
        InvalidRequest("no address"),
        Throttled("no connection"),
        asyncio.CancelledError(),
        unreachable("h:1", OSError(errno.EMFILE, "Too many open files")),
        unreachable("h:1", BlockingIOError(errno.EAGAIN, "x")),
    ],
)
async def test_what_says_nothing_of_that_kind_opens_nothing(tmp_path: Path, outcome: int | BaseException) -> None:
    setup = Setup(tmp_path, outcome)
    with closing(setup.breakers):
        await setup.call_twice()
        await setup.call_twice()
        assert (setup.provider.calls, setup.changes) == (4, [])


async def test_a_client_that_leaves_while_its_call_is_the_try_lets_another_try(tmp_path: Path) -> None:
    setup = Setup(tmp_path, 500)
    with closing(setup.breakers):
        await setup.call_twice()
        setup.now += 5
        setup.provider.outcome = asyncio.CancelledError()
        with pytest.raises(asyncio.CancelledError):
            await setup.call()
        setup.provider.outcome = 200
        assert await setup.call() == 200


async def test_no_failures_are_counted_where_the_setting_is_0(tmp_path: Path) -> None:
    setup = Setup(tmp_path, 500)
    setup.live.current = Settings(circuit_breaker_failures=0)
    with closing(setup.breakers):
        for _ in range(30):
            assert await setup.call() == 500


async def test_an_open_breaker_ends_the_retries(tmp_path: Path) -> None:
    setup = Setup(tmp_path, 500)
    config = ClientConfig(max_retry_times=20, retry_backoff_millis=0)
    with closing(setup.breakers):
        with pytest.raises(CircuitOpen):
            async with open_with_retries(setup.upstream, REQUEST, config, {}, "c"):
                pass
        assert setup.provider.calls == 2
