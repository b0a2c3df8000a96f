"""TLSTransport: a TLS connection as an asyncio transport, on top of the transport of its TCP connection.

The event loop's own keeps a read buffer of up to 256 KiB for each connection. Here the connections of a worker read
into the same ReadBuffers: what a read brings is decrypted and handed on before the next one.
"""

import asyncio
import ssl
from collections.abc import Callable
from typing import Any, cast

from opensearch_ml_stream.plugin.upstream.http1.tls_records import Data, ReadBuffers, RecordLayer


class TLSTransport(asyncio.Transport, asyncio.BufferedProtocol):
    """The transport of `protocol`, and the protocol of the TCP transport `tcp`.

    What ends a connection, and what the protocol is told:

    | the peer                                | protocol                            | connection                  |
    |-----------------------------------------|-------------------------------------|-----------------------------|
    | ends its side (close_notify)            | eof_received, connection_lost(None) | closed, with a close_notify |
    | closes the socket without close_notify  | connection_lost(None)               | closed                      |
    | breaks the connection off               | connection_lost(the OSError)        | closed                      |
    | sends what is not TLS, or has been changed | connection_lost(the SSLError)    | aborted                     |

    Whatever came before that has been handed on. `on_first_data` is called once, when data has come.
    """

    __slots__ = ("_buffers", "_closing", "_failure", "_on_first_data", "_protocol", "_records", "_tcp")

    def __init__(
        self,
        tcp: asyncio.Transport,
        records: RecordLayer,
        buffers: ReadBuffers,
        protocol: asyncio.Protocol,
        on_first_data: Callable[[ssl.SSLObject], None],
    ) -> None:
        super().__init__()
        self._tcp = tcp
        self._records = records
        self._buffers = buffers
        self._protocol = protocol
        self._on_first_data: Callable[[ssl.SSLObject], None] | None = on_first_data
        self._closing = False
        self._failure: Exception | None = None

    def start(self, received: bytes) -> None:
        """Take over the TCP transport, on which reading is paused; `received` came behind the handshake."""
        self._tcp.set_protocol(self)
        self._protocol.connection_made(self)
        self._buffers.ciphertext[: len(received)] = received  # one read at most
        self.buffer_updated(len(received))
        if not self._tcp.is_closing():
            self._tcp.resume_reading()

    # As the protocol of the TCP transport

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where the next bytes are to be put."""
        return self._buffers.ciphertext

    def buffer_updated(self, nbytes: int) -> None:
        """Decrypt what was read, and hand it on."""
        if self._closing:
            return
        records, plaintext = self._records, self._buffers.plaintext
        length = records.decrypt(self._buffers.ciphertext[:nbytes], plaintext)
        if length:
            if self._on_first_data is not None:
                self._on_first_data(records.tls)
                self._on_first_data = None
            self._protocol.data_received(bytes(plaintext[:length]))
        if records.ended:
            self._end()
        elif records.outgoing.pending and not self._closing:
            self._tcp.write(records.outgoing.read())

    def eof_received(self) -> bool:
        """Let the TCP transport close itself. A protocol is not told that nothing more comes: nobody has said so."""
        return False

    def connection_lost(self, error: Exception | None) -> None:
        """Tell the protocol."""
        self._closing = True
        self._protocol.connection_lost(self._failure or error)

    def pause_writing(self) -> None:
        """Tell the protocol that the socket does not keep up."""
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        """Tell the protocol that the socket keeps up again."""
        self._protocol.resume_writing()

    # As the transport of the protocol

    def write(self, data: Data) -> None:
        """Encrypt and send; what is written to a closed transport is dropped."""
        if self._closing:
            return
        try:
            ciphertext = self._records.encrypt(data)
        except ssl.SSLError as error:
            self._fail(error)
            return
        if ciphertext:
            self._tcp.write(ciphertext)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Have what comes from now on handed to another protocol."""
        self._protocol = cast(asyncio.Protocol, protocol)

    def get_protocol(self) -> asyncio.BaseProtocol:
        """Return the protocol."""
        return self._protocol

    def is_closing(self) -> bool:
        """Whether the connection is closed, or about to be."""
        return self._closing or self._tcp.is_closing()

    def close(self) -> None:
        """Say that nothing more is sent, and close the connection once everything is."""
        if not self._closing:
            self._closing = True
            self._tcp.write(self._records.close())
            self._tcp.close()

    def abort(self) -> None:
        """Close the connection at once."""
        self._closing = True
        self._tcp.abort()

    def pause_reading(self) -> None:
        """Have nothing handed on until `resume_reading`."""
        self._tcp.pause_reading()

    def resume_reading(self) -> None:
        """Go on reading."""
        self._tcp.resume_reading()

    def is_reading(self) -> bool:
        """Whether reading is not paused."""
        return self._tcp.is_reading()

    def get_write_buffer_size(self) -> int:
        """Return how many bytes wait for the socket."""
        return self._tcp.get_write_buffer_size() + self._records.unsent_bytes

    def get_write_buffer_limits(self) -> tuple[int, int]:
        """Return the limits of what may wait for the socket, low and high, in bytes of ciphertext."""
        return self._tcp.get_write_buffer_limits()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Set these limits."""
        self._tcp.set_write_buffer_limits(high, low)

    def can_write_eof(self) -> bool:
        """Return False: TLS closes both sides."""
        return False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return what is known of the TLS connection (`ssl_object`, `peercert`, `cipher`) or of its socket."""
        tls = self._records.tls
        if name == "ssl_object":
            return tls
        if name == "peercert":
            return tls.getpeercert()
        if name == "cipher":
            return tls.cipher()
        return self._tcp.get_extra_info(name, default)

    def _end(self) -> None:
        if self._records.failure is not None:
            self._fail(self._records.failure)
        elif not self._closing:
            self._protocol.eof_received()
            self.close()

    def _fail(self, error: Exception) -> None:
        self._failure = error
        self.abort()
