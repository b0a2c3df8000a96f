"""A provider is called again after transient failures only, as the connector says."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from random import Random

import pytest

from opensearch_ml_stream.connectors.client_config import ClientConfig
from opensearch_ml_stream.connectors.errors import InvalidRequest, MLStreamError, Throttled, UpstreamError
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.plugin.upstream import ReadTimedOut, Sink, UpstreamResponse, pump_by_reading
from opensearch_ml_stream.plugin.upstream.retries import open_with_retries
from tests.upstream.virtual_time_loop import now

REQUEST = ProviderRequest("POST", "http://provider.example/", {}, b"{}")
CONFIG = ClientConfig(max_retry_times=2, retry_backoff_millis=500, retry_timeout_seconds=30)


@dataclass
class FakeResponse:
    status: int
    headers: Mapping[str, str] = field(default_factory=dict)

    async def read(self) -> bytes:
        return b""

    async def pump(self, sink: Sink) -> bool:
        return await pump_by_reading(self.read, sink)

    def limit_silence(self, seconds: float) -> None:
        pass

    def fail(self, error: UpstreamError) -> None:
        pass


class FakeUpstream:
    """Gives one outcome a call, the last one again and again; notes when it was called and which responses are open."""

    def __init__(self, *outcomes: FakeResponse | MLStreamError, seconds: float = 0) -> None:
        self.called_at: list[float] = []
        self.arguments: list[tuple[ProviderRequest, ClientConfig, Mapping[str, str], str]] = []
        self.open_responses = 0
        self._outcomes = list(outcomes)
        self._seconds = seconds

    @asynccontextmanager
    async def open(
        self, request: ProviderRequest, config: ClientConfig, tls: Mapping[str, str], pool_key: str = ""
    ) -> AsyncIterator[UpstreamResponse]:
        assert self.open_responses == 0, "the response before is still open"
        self.called_at.append(now())
        self.arguments.append((request, config, tls, pool_key))
        await asyncio.sleep(self._seconds)
        outcome = self._outcomes.pop(0) if len(self._outcomes) > 1 else self._outcomes[0]
        if isinstance(outcome, MLStreamError):
            raise outcome
        self.open_responses += 1
        try:
            yield outcome
        finally:
            self.open_responses -= 1


async def status_of(upstream: FakeUpstream, config: ClientConfig = CONFIG) -> int:
    async with open_with_retries(upstream, REQUEST, config, {"a": "b"}, "connector", Random(1)) as response:
        assert upstream.open_responses == 1
        return response.status


OK = FakeResponse(200)
BROKEN = UpstreamError("connection refused")


@pytest.mark.parametrize("fault", [*(FakeResponse(status) for status in (429, 500, 502, 503, 504, 529)), BROKEN])
async def test_a_transient_failure_is_tried_again(fault: FakeResponse | MLStreamError) -> None:
    upstream = FakeUpstream(fault, fault, OK)
    assert await status_of(upstream) == 200
    assert upstream.called_at == [0, 0.5, 1.0]
    assert upstream.open_responses == 0
    assert upstream.arguments == [(REQUEST, CONFIG, {"a": "b"}, "connector")] * 3


@pytest.mark.parametrize("status", [200, 204, 302, 400, 401, 403, 404, 408, 422, 501, 505])
async def test_any_other_response_is_the_callers(status: int) -> None:
    upstream = FakeUpstream(FakeResponse(status))
    assert await status_of(upstream) == status
    assert len(upstream.called_at) == 1


@pytest.mark.parametrize("error", [ReadTimedOut("silent"), Throttled("busy"), InvalidRequest("not allowed")])
async def test_an_error_that_another_call_does_not_help_is_raised_at_once(error: MLStreamError) -> None:
    upstream = FakeUpstream(error, OK)
    with pytest.raises(type(error)) as raised:
        await status_of(upstream)
    assert raised.value is error
    assert upstream.called_at == [0]


async def test_without_retries_the_first_outcome_is_the_callers() -> None:
    config = replace(CONFIG, max_retry_times=0)
    upstream = FakeUpstream(FakeResponse(503), OK)
    assert await status_of(upstream, config) == 503
    with pytest.raises(UpstreamError, match="connection refused"):
        await status_of(FakeUpstream(BROKEN, OK), config)
    assert upstream.called_at == [0]


@pytest.mark.parametrize("times", [1, 2, 5])
async def test_the_last_outcome_is_the_callers_after_all_retries(times: int) -> None:
    config = replace(CONFIG, max_retry_times=times)
    upstream = FakeUpstream(FakeResponse(503))
    assert await status_of(upstream, config) == 503
    assert len(upstream.called_at) == 1 + times
    broken = FakeUpstream(BROKEN)
    with pytest.raises(UpstreamError, match="connection refused"):
        await status_of(broken, config)
    assert len(broken.called_at) == 1 + times


async def test_retries_without_a_limit_end_with_their_time() -> None:
    config = replace(CONFIG, max_retry_times=-1, retry_backoff_millis=10_000)
    upstream = FakeUpstream(FakeResponse(503))
    assert await status_of(upstream, config) == 503
    assert upstream.called_at == [0, 10, 20, 30]
    broken = FakeUpstream(BROKEN)
    with pytest.raises(UpstreamError):
        await status_of(broken, replace(config, retry_timeout_seconds=29.9))
    assert broken.called_at == [30, 40, 50]


async def test_the_time_of_the_calls_counts_too() -> None:
    upstream = FakeUpstream(FakeResponse(503), seconds=14.6)
    assert await status_of(upstream, replace(CONFIG, max_retry_times=9)) == 503
    assert upstream.called_at == [0, pytest.approx(15.1)]


async def test_no_response_is_open_while_a_retry_is_waited_for() -> None:
    upstream = FakeUpstream(FakeResponse(503), OK)
    task = asyncio.create_task(status_of(upstream))
    await asyncio.sleep(0.1)
    assert (upstream.open_responses, upstream.called_at) == (0, [0])
    await task


@pytest.mark.parametrize(("policy", "least"), [("exponential_full_jitter", 0), ("exponential_equal_jitter", 0.25)])
async def test_the_wait_doubles_with_each_attempt_by_the_connectors_policy(policy: str, least: float) -> None:
    config = replace(CONFIG, max_retry_times=4, retry_backoff_policy=policy)
    upstream = FakeUpstream(FakeResponse(503))
    await status_of(upstream, config)
    waits = [after - before for before, after in zip(upstream.called_at, upstream.called_at[1:], strict=False)]
    assert len(set(waits)) == 4
    for attempt, wait in enumerate(waits):
        assert least * 2**attempt <= wait <= 0.5 * 2**attempt
    again = FakeUpstream(FakeResponse(503))
    began = now()
    await status_of(again, config)
    assert again.called_at == pytest.approx([began + at for at in upstream.called_at])  # the same seed


@pytest.mark.parametrize(("retry_after", "wait"), [("7", 7), ("0", 0.5), ("soon", 0.5)])
async def test_retry_after_is_waited_for_if_it_is_longer(retry_after: str, wait: float) -> None:
    upstream = FakeUpstream(FakeResponse(429, {"retry-after": retry_after}), OK)
    assert await status_of(upstream) == 200
    assert upstream.called_at == [0, wait]


async def test_milliseconds_are_waited_for_as_they_are() -> None:
    upstream = FakeUpstream(FakeResponse(429, {"retry-after": "7", "retry-after-ms": "2500"}), OK)
    assert await status_of(upstream) == 200
    assert upstream.called_at == [0, 2.5]


async def test_retry_after_may_be_a_date() -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=20), usegmt=True)
    upstream = FakeUpstream(FakeResponse(503, {"retry-after": date}), OK)
    assert await status_of(upstream) == 200
    assert 15 < upstream.called_at[1] <= 20


async def test_a_retry_that_would_come_too_late_is_not_waited_for() -> None:
    upstream = FakeUpstream(FakeResponse(429, {"retry-after": "31"}), OK)
    assert await status_of(upstream) == 429
    assert (upstream.called_at, now()) == ([0], 0)
    upstream = FakeUpstream(FakeResponse(429, {"retry-after": "30"}), OK)
    assert await status_of(upstream) == 200


async def test_retry_after_does_not_keep_an_error_from_being_tried_again() -> None:
    upstream = FakeUpstream(FakeResponse(429, {"retry-after": "7"}), BROKEN, OK)
    assert await status_of(upstream) == 200
    assert upstream.called_at == [0, 7, 7.5]


@pytest.mark.parametrize("error", [UpstreamError("cut"), ZeroDivisionError()])
async def test_an_error_of_the_caller_is_no_reason_to_call_again(error: Exception) -> None:
    upstream = FakeUpstream(OK)
    with pytest.raises(type(error)) as raised:
        async with open_with_retries(upstream, REQUEST, CONFIG, {}) as response:
            assert response is OK
            raise error
    assert raised.value is error
    assert upstream.called_at == [0]
    assert upstream.open_responses == 0
    assert upstream.arguments[0][3] == ""


async def test_waits_are_random_where_no_seed_is_given() -> None:
    config = replace(CONFIG, max_retry_times=1, retry_backoff_policy="exponential_full_jitter")
    waits = set()
    for _ in range(3):
        upstream = FakeUpstream(FakeResponse(503))
        async with open_with_retries(upstream, REQUEST, config, {}):
            waits.add(upstream.called_at[1] - upstream.called_at[0])
    assert len(waits) == 3
