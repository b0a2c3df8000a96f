"""Provider calls behind circuit breakers, one for each connector; see `shared_breakers`."""

import logging
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any

from opensearch_ml_stream.connectors.client_config import ClientConfig
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.plugin.settings import LiveSettings
from opensearch_ml_stream.plugin.upstream import CircuitOpen, Upstream, UpstreamResponse
from opensearch_ml_stream.plugin.upstream.circuit_breaker.shared_breakers import BreakerRules, SharedBreakers
from opensearch_ml_stream.plugin.upstream.network_errors import BrokenConnection

log = logging.getLogger(__name__)

OPENED, CLOSED = "opened", "closed"

Report = Callable[[str, str], None]
"""Called with a connector's id, and OPENED or CLOSED."""


class BreakingUpstream:
    """An Upstream that leaves the provider of a connector alone while its breaker is open.

    A failure is a call without a response head, or with a status of 500 and more: the provider is down, or overloaded.
    Any other response says that it is there.
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
    """Say that breakers cannot work; the provider is called as if there were none."""
    log.warning("Circuit breakers cannot be kept (%s); is the disk full, or a worker stopped?", error.strerror)
