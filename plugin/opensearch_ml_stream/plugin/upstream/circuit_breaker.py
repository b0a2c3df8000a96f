"""Circuit breakers: a provider that fails again and again is not called for a while; one breaker for each connector.

A connector whose provider failed has a record in a table of one level, which every worker has mapped. While it is empty
no provider fails, and a call costs nothing more.

A breaker is *closed* until so many calls in a row have failed, then *open*: for some seconds nobody calls. Then it is
*half-open*: one call of all workers goes through. If it fails too, the breaker opens for twice as long.
"""

import logging
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from time import monotonic
from types import TracebackType
from typing import Any

from opensearch_ml_stream.connectors.client_config import ClientConfig
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.plugin.settings import LiveSettings
from opensearch_ml_stream.plugin.shared.table import SharedTable, table_key
from opensearch_ml_stream.plugin.upstream import CircuitOpen, Upstream, UpstreamResponse
from opensearch_ml_stream.plugin.upstream.network_errors import BrokenConnection

MAX_PAUSE_SECONDS = 60.0
PROBE_SECONDS = 60.0  # after which another call may try: the worker of the first may have been killed

_RECORD = Struct("qddd")  # failures in a row; open until; for so many seconds; probed until (monotonic)


@dataclass(frozen=True, slots=True)
class BreakerRules:
    """So many failures in a row open a breaker, for so many seconds at first; 0 failures: it never opens."""

    failures: int
    seconds: float


@dataclass(slots=True)
class _State:
    failures: int = 0
    open_until: float = 0.0  # 0 while the breaker is closed
    pause: float = 0.0
    probed_until: float = 0.0


class SharedBreakers:
    """The breakers of a server. `directory` is shared by its workers and removed with it.

    While the table `failing` is empty, no call has to wait and no success has to be noted.
    """

    def __init__(self, directory: Path, now: Callable[[], float] = monotonic) -> None:
        self.failing = SharedTable(directory / "circuit-breakers", _RECORD, max_levels=1)
        self._now = now
        with self.failing:
            self.failing.prepare()

    def close(self) -> None:
        """Close the file."""
        self.failing.close()

    def wait_seconds(self, key: str) -> float:
        """Return 0 if a call may be made, else in how many seconds to ask again. OSError if the file is unusable.

        Whoever gets 0 while the breaker is half-open has to report how its call ended.
        """
        place = self.failing.find(table_key(key))
        if not place or self._read(place).open_until == 0.0:
            return 0.0
        with self._changing(key) as state:
            now = self._now()
            wait = max(state.open_until, state.probed_until) - now
            if wait <= 0 and state.open_until:
                state.probed_until = now + PROBE_SECONDS
            return max(wait, 0.0) if state.open_until else 0.0

    def succeed(self, key: str) -> bool:
        """Note that the provider responded; return whether this closed the breaker."""
        if not self.failing.find(table_key(key)):
            return False
        with self._changing(key) as state:
            was_open = state.open_until > 0
            state.failures = 0
            return was_open

    def fail(self, key: str, rules: BreakerRules) -> float | None:
        """Note a failure; return for how many seconds it opened the breaker, None if it did not.

        OSError if there is no room for another breaker.
        """
        with self._changing(key) as state:
            state.failures += 1
            now = self._now()
            if not rules.failures or state.failures < rules.failures or state.open_until > now:
                return None
            state.pause = min(2 * state.pause, MAX_PAUSE_SECONDS) if state.open_until else rules.seconds
            state.open_until, state.probed_until = now + state.pause, 0.0
            return state.pause

    def give_up(self, key: str) -> None:
        """Note that a call ended without saying anything about the provider: another may try."""
        if self.failing.find(table_key(key)):
            with self._changing(key) as state:
                state.probed_until = 0.0

    @contextmanager
    def _changing(self, key: str) -> Iterator[_State]:
        """Lock the table for the block; the state it leaves is written. One without failures has no record."""
        table, digest = self.failing, table_key(key)
        with table:
            place = table.find(digest)
            state = self._read(place) if place else _State()
            yield state
            if state.failures:
                [place] = table.places([digest], _is_free)
                table.write(place, state.failures, state.open_until, state.pause, state.probed_until)
            elif place:
                table.remove(place)

    def _read(self, place: int) -> _State:
        return _State(*self.failing.read(place))


def _is_free(record: tuple[int, ...]) -> bool:
    return not record[0]


log = logging.getLogger(__name__)

OPENED, CLOSED = "opened", "closed"

Report = Callable[[str, str], None]
"""Called with a connector's id, and OPENED or CLOSED."""


class BreakingUpstream:
    """An Upstream that does not call the provider of a connector while its breaker is open.

    A failure is a call without a response head, or with a status of 500 and more: the provider is down, or overloaded.
    Any other response shows that it works.
    """

    def __init__(self, upstream: Upstream, breakers: SharedBreakers, live: LiveSettings, report: Report) -> None:
        self._upstream = upstream
        self._breakers = breakers
        self._live = live
        self._report = report

    def open(
        self, request: ProviderRequest, config: ClientConfig, tls: Mapping[str, str], pool_key: str = ""
    ) -> AbstractAsyncContextManager[UpstreamResponse]:
        """See Upstream.open; CircuitOpen while the breaker is open."""
        call = self._upstream.open(request, config, tls, pool_key)
        if not self._live.current.circuit_breaker_failures:
            return call
        return _Call(call, self, pool_key)

    def check(self, key: str) -> None:
        """Raise CircuitOpen if the provider is not to be called now."""
        if self._breakers.failing.is_empty:
            return
        try:
            wait = self._breakers.wait_seconds(key)
        except OSError as error:
            _complain(error)
            return
        if wait > 0:
            raise CircuitOpen(key, wait)

    def succeeded(self, key: str) -> None:
        """Note that the provider responded."""
        if self._breakers.failing.is_empty:
            return
        try:
            if self._breakers.succeed(key):
                log.info("The provider of connector %s responds again: its circuit breaker is closed", key)
                self._report(key, CLOSED)
        except OSError as error:
            _complain(error)

    def failed(self, key: str, problem: str) -> None:
        """Note that the provider failed."""
        settings = self._live.current
        rules = BreakerRules(settings.circuit_breaker_failures, settings.circuit_breaker_seconds)
        try:
            seconds = self._breakers.fail(key, rules)
        except OSError as error:
            _complain(error)
            return
        if seconds is not None:
            log.warning("The provider of connector %s fails (%s): it is not called for %g s", key, problem, seconds)
            self._report(key, OPENED)

    def given_up(self, key: str) -> None:
        """Note that a call says nothing about the provider."""
        try:
            self._breakers.give_up(key)
        except OSError as error:
            _complain(error)


class _Call(AbstractAsyncContextManager[UpstreamResponse]):
    __slots__ = ("_call", "_key", "_upstream")

    def __init__(
        self, call: AbstractAsyncContextManager[UpstreamResponse], upstream: BreakingUpstream, key: str
    ) -> None:
        self._call = call
        self._upstream = upstream
        self._key = key

    async def __aenter__(self) -> UpstreamResponse:
        upstream, key = self._upstream, self._key
        upstream.check(key)
        try:
            response = await self._call.__aenter__()
        except UpstreamError as error:
            if isinstance(error, BrokenConnection) and error.is_ours:
                upstream.given_up(key)
            else:
                upstream.failed(key, error.reason)
            raise
        except BaseException:
            upstream.given_up(key)
            raise
        if response.status >= 500:
            upstream.failed(key, f"status {response.status}")
        else:
            upstream.succeeded(key)
        return response

    def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> Coroutine[Any, Any, bool | None]:
        return self._call.__aexit__(kind, error, traceback)


def _complain(error: OSError) -> None:
    """Log that breakers cannot work; the provider is called as if there were none."""
    log.warning("Circuit breakers cannot be kept (%s); is the disk full, or a worker stopped?", error.strerror)
