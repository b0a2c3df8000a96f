"""The way to a provider: a rendered request goes out, a status, headers and bytes come back.

Only this module's implementations open sockets to providers. Whatever a client library raises becomes an
UpstreamError here (or InvalidRequest, where the address itself is not allowed).
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from opensearch_ml_stream.connectors.documents import ClientConfig
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.rendering.action import ProviderRequest

# Takes bytes of a body as they come, in the connection's own callback; False: no more for now. Must not raise.
Sink = Callable[[bytes], bool]


class UpstreamResponse(Protocol):
    """A provider's answer whose head has come. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]

    async def read(self) -> bytes:
        """The next bytes of the body as they come, b"" at its end.

        UpstreamError if the connection breaks, or stays silent for the connector's `read_timeout`.
        """
        ...

    async def pump(self, sink: Sink) -> bool:
        """Hands what comes to `sink` at once, without waking a task for it, until it returns False or the body ends.

        True at the end of the body, False if `sink` stopped it: call `read` or `pump` again for the rest.
        UpstreamError as `read`.
        """
        ...


async def pump_by_reading(read: Callable[[], Awaitable[bytes]], sink: Sink) -> bool:
    """`UpstreamResponse.pump` for a response that can only be read."""
    while data := await read():
        if not sink(data):
            return False
    return True


class Upstream(Protocol):
    def open(
        self, request: ProviderRequest, config: ClientConfig, tls: Mapping[str, str], pool_key: str = ""
    ) -> AbstractAsyncContextManager[UpstreamResponse]:
        """Sends the request and waits for the head. Leaving the context early closes the connection at once.

        `tls` holds the credential keys of mutual TLS (client_cert_pem, ...), empty without it. `pool_key` says
        whose `max_connection` counts: the connector's id. Throttled (429) when none of those came free in time.
        """
        ...


class ReadTimedOut(UpstreamError):
    """The provider was silent for `read_timeout`. Not called again: it may well be at work, and it may be paid for."""
