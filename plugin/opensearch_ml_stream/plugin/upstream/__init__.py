"""Upstream: sends a rendered request to a provider and returns status, headers and body bytes.

Only the implementations in this package open sockets to providers. Whatever a client library raises becomes an
UpstreamError here (or InvalidRequest, where the address itself is not allowed).
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from math import ceil
from typing import Protocol

from opensearch_ml_stream.connectors.client_config import ClientConfig
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest

# Called with bytes of a body as they come, in the connection's own callback. It returns False to get no more for now,
# and must not raise.
Sink = Callable[[bytes], bool]


class UpstreamResponse(Protocol):
    """A provider's response whose head has been received. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]

    async def read(self) -> bytes:
        """Return the next bytes of the body as they come, b"" at its end.

        UpstreamError if the connection breaks; ReadTimedOut if the provider is silent for the connector's
        `read_timeout`.
        """
        ...

    async def pump(self, sink: Sink) -> bool:
        """Pass body bytes to `sink` until it returns False or the body ends; return whether the body has ended.

        `sink` is called as the bytes come, without waking a task for them. After False call `read` or `pump` again
        for the rest. Errors as `read`.
        """
        ...

    def limit_silence(self, seconds: float) -> None:
        """Limit the provider's silence to so many seconds from now on, unless `read_timeout` is less."""
        ...

    def fail(self, error: UpstreamError) -> None:
        """Close the connection, unless the whole body has come; `read` and `pump` raise `error` from then on.

        What has come may still be read before that.
        """
        ...


async def pump_by_reading(read: Callable[[], Awaitable[bytes]], sink: Sink) -> bool:
    """Implement `UpstreamResponse.pump` for a response that can only be read."""
    while data := await read():
        if not sink(data):
            return False
    return True


class Upstream(Protocol):
    """A client for providers."""

    def open(
        self, request: ProviderRequest, config: ClientConfig, tls: Mapping[str, str], pool_key: str = ""
    ) -> AbstractAsyncContextManager[UpstreamResponse]:
        """Send the request and wait for the response head. Leaving the context early closes the connection at once.

        `tls` holds the credentials that count for TLS (ca_cert_pem; client_cert_pem, ...), often none. `pool_key` says
        whose `max_connection` counts: the connector's id.

        InvalidRequest if the request or its address is not allowed, UpstreamError if no response head comes,
        Throttled (429) if none of the connector's connections came free within `connection_timeout`.
        """
        ...


class ReadTimedOut(UpstreamError):
    """The provider was silent for `read_timeout`. It is not called again: it may be at work, and may be paid for."""


class ResponseFailed(UpstreamError):
    """The provider said in the middle of its response, or after it, why it cannot go on: nothing was cut off."""


class CircuitOpen(UpstreamError):
    """The provider failed again and again: it is not called for some seconds, which `retry_after` says."""

    def __init__(self, connector_id: str, seconds: float) -> None:
        super().__init__(
            f"The provider of connector {connector_id} failed again and again; it is called again in {ceil(seconds)} s "
            "(settings opensearch_ml_stream.circuit_breaker_failures, opensearch_ml_stream.circuit_breaker_seconds)",
            type="provider_unavailable_exception",
        )
        self.retry_after = str(ceil(seconds))
