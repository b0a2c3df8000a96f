"""RecordLayer: the client's side of a TLS connection in memory, and the buffers that connections share."""

import ssl
from contextlib import suppress

# How much is given to OpenSSL at once. Its buffers grow to the largest piece and never shrink, so that a large one
# would be held for as long as the connection is.
PIECE_BYTES = 8 * 1024
HANDSHAKE_PIECE_BYTES = 2 * 1024  # a certificate chain takes some 4 KiB; most streams have no larger read than this
MAX_PLAINTEXT = 16 * 1024  # of one TLS record
READ_BYTES = 64 * 1024  # of ciphertext, in one read of a socket

Data = bytes | bytearray | memoryview


class ReadBuffers:
    """What one read of a socket brings, and its plaintext. Both are used up before another connection is read."""

    __slots__ = ("ciphertext", "plaintext")

    def __init__(self) -> None:
        self.ciphertext = memoryview(bytearray(READ_BYTES))
        self.plaintext = memoryview(bytearray(READ_BYTES + MAX_PLAINTEXT))


class RecordLayer:
    """A TLS connection without its socket: `handshake` until it is over, then `decrypt` and `encrypt`.

    What is to be sent after any of them is in `outgoing`. Once `ended`, nothing more is received: the peer has
    said so (close_notify), or what it sent is not TLS, which is then the `failure`.
    """

    __slots__ = ("_has_received", "_incoming", "_unsent", "ended", "failure", "outgoing", "tls")

    def __init__(self, context: ssl.SSLContext, host: str, session: ssl.SSLSession | None = None) -> None:
        self._incoming = ssl.MemoryBIO()
        self.outgoing = ssl.MemoryBIO()
        self._unsent = b""
        self._has_received = False  # data
        self.tls = context.wrap_bio(self._incoming, self.outgoing, server_hostname=host, session=session)
        self.ended = False
        self.failure: ssl.SSLError | None = None

    @property
    def unsent_bytes(self) -> int:
        """How much plaintext waits for the end of a renegotiation."""
        return len(self._unsent)

    def handshake(self, data: bytes) -> bytes | None:
        """Take bytes of the handshake, none at first. Return those behind it once it is over, None until then.

        ssl.SSLError if it fails, SSLCertVerificationError for a certificate that is not trusted; there may be an
        alert to be sent then.
        """
        begin = 0
        while True:
            try:
                self.tls.do_handshake()
            except ssl.SSLWantReadError:
                if begin >= len(data):
                    return None
                self._incoming.write(data[begin : begin + HANDSHAKE_PIECE_BYTES])
                begin += HANDSHAKE_PIECE_BYTES
            else:
                return data[begin:]

    def decrypt(self, data: memoryview, plaintext: memoryview) -> int:
        """Take ciphertext, and put what it says at the begin of `plaintext`; return how many bytes that is.

        `plaintext` needs room for MAX_PLAINTEXT bytes more than `data` has: most of a record may have come before.
        """
        length = 0
        if len(data) <= PIECE_BYTES:
            self._incoming.write(data)
            length = self._read_records(plaintext, 0)
        else:
            for begin in range(0, len(data), PIECE_BYTES):
                self._incoming.write(data[begin : begin + PIECE_BYTES])
                length = self._read_records(plaintext, length)
                if self.ended:
                    break
        if self._unsent and not self.ended:
            self._write_unsent()
        elif length and not (self._has_received or self.ended):  # tickets may have come with the first data
            self._has_received = True
            self._release_write_buffer()
        return length

    def encrypt(self, data: Data) -> bytes:
        """Return plaintext as ciphertext to be sent. While the peer renegotiates it is kept instead.

        ssl.SSLError if the connection has failed.
        """
        if len(data) <= PIECE_BYTES:
            self._write(data)
            return self.outgoing.read()
        view, ciphertext = memoryview(data), []
        for begin in range(0, len(view), PIECE_BYTES):
            self._write(view[begin : begin + PIECE_BYTES])
            ciphertext.append(self.outgoing.read())
        return b"".join(ciphertext)

    def close(self) -> bytes:
        """End what is sent; return the ciphertext that says so."""
        with suppress(ssl.SSLError):  # the peer has not ended its side, which nobody waits for
            self.tls.unwrap()
        return self.outgoing.read()

    def _read_records(self, plaintext: memoryview, length: int) -> int:
        """Read the complete records to behind the first `length` bytes of `plaintext`; return its new length."""
        incoming, read = self._incoming, self.tls.read
        try:
            while incoming.pending:  # asked first: to find no record is dearer than to read one
                count: int = read(MAX_PLAINTEXT, plaintext[length:])  # type: ignore[assignment]
                if not count:
                    self.ended = True
                    break
                length += count
        except ssl.SSLWantReadError:
            if not self._unsent:
                self._release_write_buffer()
        except ssl.SSLError as error:
            self.ended, self.failure = True, error
        return length

    def _release_write_buffer(self) -> None:
        """Have OpenSSL free 16 KiB, which it takes for the response to a session ticket and frees when it writes."""
        with suppress(ssl.SSLWantReadError):  # the peer renegotiates
            self.tls.write(b"")

    def _write(self, data: Data) -> None:
        if self._unsent:
            self._unsent += data
            return
        try:
            self.tls.write(data)
        except ssl.SSLWantReadError:
            self._unsent = bytes(data)

    def _write_unsent(self) -> None:
        with suppress(ssl.SSLWantReadError):  # the renegotiation goes on
            while self._unsent:
                self.tls.write(self._unsent[:PIECE_BYTES])
                self._unsent = self._unsent[PIECE_BYTES:]
