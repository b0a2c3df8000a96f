"""A client's connection during its TLS handshake, after which a StreamingProtocol takes over.

It counts as an open connection. The limit for a request's head applies to its first byte and to the handshake.
"""

import asyncio
import ssl
from typing import Any

from cryptography import x509

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.server.http1.limits import HIGH_WATER_BYTES
from opensearch_ml_stream.plugin.server.http1.protocol import SecureChannel, SharedState, StreamingProtocol
from opensearch_ml_stream.plugin.server.http1.refusals import refusal

_VERSIONS = {"TLSv1.2": 0x0303, "TLSv1.3": 0x0304}
_HANDSHAKE_RECORD = 0x16  # the first byte that a client of TLS sends (RFC 8446, section 5.1)
_PLAIN = InvalidRequest("This port speaks HTTPS only: the URL must begin with https://", type="bad_request_exception")


class TLSHandshake(asyncio.Protocol):
    """A connection that is handed over to a StreamingProtocol when its handshake has succeeded.

    It needs uvloop, which delivers bytes that a client sends with the end of its handshake after start_tls has
    returned. asyncio's own loop delivers them earlier, to a protocol that cannot read them.
    """

    __slots__ = ("_context", "_deadline", "_first", "_loop", "_shared", "_tcp")

    def __init__(self, shared: SharedState, loop: asyncio.AbstractEventLoop, context: ssl.SSLContext) -> None:
        self._shared = shared
        self._loop = loop
        self._context = context
        self._first = b""

    # Called by the transport.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first bytes, unless there are too many connections."""
        self._tcp = transport
        self._deadline = self._loop.time() + self._shared.limits.head_seconds
        self._shared.admit(self, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection of a client that has disconnected."""
        self._shared.forget(self)

    def data_received(self, data: bytes) -> None:
        """Start the handshake, or refuse a client that does not speak TLS."""
        self._first += data
        if len(self._first) > len(data):  # before `_shake_hands` runs
            return
        if data[0] == _HANDSHAKE_RECORD:
            self._tcp.pause_reading()
            tasks = self._shared.state.tasks
            task = self._loop.create_task(self._shake_hands())
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            return
        self._shared.warn("a client does not speak TLS, and this port speaks HTTPS only; its connection is closed")
        if data[:1].isupper():  # a method of HTTP
            self._tcp.write(refusal(_PLAIN, self._shared.state.default_headers))
        self._tcp.close()

    # Called by the worker.

    def check_deadlines(self, now: float) -> None:
        """Close the connection if nothing has arrived in time; called once a second."""
        if now >= self._deadline and not self._first:
            self._tcp.abort()

    def shutdown(self) -> None:
        """Close the connection."""
        self._tcp.abort()

    async def _shake_hands(self) -> None:
        if self._tcp.is_closing():
            return
        limits = self._shared.limits
        self._loop.call_soon(self._feed_first)
        try:
            transport = await self._loop.start_tls(
                self._tcp,
                self,
                self._context,
                server_side=True,
                ssl_handshake_timeout=limits.head_seconds,
                ssl_shutdown_timeout=limits.unread_seconds,
            )
            if transport is not None and not transport.is_closing():
                self._hand_over(transport)
        except (OSError, ValueError) as error:  # a disconnect, or a certificate whose subject cannot be read
            self._tcp.abort()
            if isinstance(error, ssl.SSLError):
                self._shared.warn(f"a client's TLS handshake failed: {error.reason}")
        finally:
            self._shared.forget(self)

    def _feed_first(self) -> None:
        """Pass the first bytes to the protocol with which start_tls has replaced this one."""
        protocol: Any = self._tcp.get_protocol()
        unread = memoryview(self._first)
        while unread and protocol is not self:
            buffer = protocol.get_buffer(len(unread))
            size = min(len(buffer), len(unread))
            buffer[:size] = unread[:size]
            protocol.buffer_updated(size)
            unread = unread[size:]

    def _hand_over(self, transport: asyncio.Transport) -> None:
        transport.set_write_buffer_limits(high=HIGH_WATER_BYTES)  # as without TLS; the default is eight times that
        extension = tls_extension(transport.get_extra_info("ssl_object"))
        protocol = StreamingProtocol(self._shared, self._loop)
        protocol.secure_channel = SecureChannel(extension, self._tcp)
        transport.set_protocol(protocol)
        self._shared.forget(self)  # else it would be counted twice
        protocol.connection_made(transport)


def tls_extension(connection: ssl.SSLObject) -> dict[str, Any]:
    """Return `scope["extensions"]["tls"]`, ASGI's TLS extension, for a connection whose handshake is over.

    https://asgi.readthedocs.io/en/latest/specs/tls.html.
    A client's certificate is there only if it was verified. ValueError if its subject cannot be read. The server's own
    certificate and the cipher suite, which may be None, are.
    """
    client = connection.getpeercert(binary_form=True)
    return {
        "server_cert": None,
        "client_cert_chain": [] if client is None else [ssl.DER_cert_to_PEM_cert(client)],
        "client_cert_name": None if client is None else x509.load_der_x509_certificate(client).subject.rfc4514_string(),
        "client_cert_error": None,
        "tls_version": _VERSIONS.get(connection.version() or ""),
        "cipher_suite": None,
    }
