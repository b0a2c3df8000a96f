"""ReadBuffers: the memory into which all TLS connections of a worker read, one after the other."""

from opensearch_ml_stream.plugin.upstream.secure.record_layer import MAX_PLAINTEXT

READ_BYTES = 64 * 1024  # of ciphertext, in one read of a socket


class ReadBuffers:
    """What a read of a socket brings, and its plaintext. Both are used up before the next connection is read."""

    __slots__ = ("ciphertext", "plaintext")

    def __init__(self) -> None:
        self.ciphertext = memoryview(bytearray(READ_BYTES))
        self.plaintext = memoryview(bytearray(READ_BYTES + MAX_PLAINTEXT))
