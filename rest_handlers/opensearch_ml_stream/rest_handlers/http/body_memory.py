"""The memory that request bodies may take: one, and all of a worker together."""

from opensearch_ml_stream.connectors.errors import BodyTooLarge, Throttled


class BodyMemory:
    """A sum of bytes, of which each request reserves what it holds of its body. Sizes in bytes."""

    __slots__ = ("max_body_size", "max_total_body_size", "reserved")

    def __init__(self, max_body_size: int, max_total_body_size: int) -> None:
        self.max_body_size = max_body_size
        self.max_total_body_size = max_total_body_size
        self.reserved = 0


class BodyReservation:
    """The `size` that one request has reserved. `release` it when the body is let go; a second time does nothing."""

    __slots__ = ("_memory", "max_body_size", "size")

    def __init__(self, memory: BodyMemory) -> None:
        self.max_body_size = memory.max_body_size
        self._memory = memory
        self.size = 0

    def __enter__(self) -> "BodyReservation":
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def add(self, size: int) -> None:
        """Reserve `size` bytes more.

        Throttled if the bodies of all requests would be larger than their limit, BodyTooLarge if this one is.
        """
        memory = self._memory
        if self.size + size > memory.max_total_body_size:
            raise BodyTooLarge(
                f"The bodies of all requests in this worker may be {memory.max_total_body_size} bytes together "
                "(setting opensearch_ml_stream.max_total_body_size); this one is larger",
                type="content_too_long_exception",
            )
        if memory.reserved + size > memory.max_total_body_size:
            raise Throttled(
                f"The bodies of all requests in this worker may be {memory.max_total_body_size} bytes together "
                "(setting opensearch_ml_stream.max_total_body_size); this one does not fit, send it again",
                type="rejected_execution_exception",
                retry_after="1",
            )
        memory.reserved += size
        self.size += size

    def cover(self, size: int) -> None:
        """Reserve what is missing to `size` bytes; errors as of `add`."""
        self.add(max(size - self.size, 0))

    def take_over(self, other: "BodyReservation") -> None:
        """Reserve what another has reserved of the same memory, in its place."""
        self.size += other.size
        other.size = 0

    def release(self) -> None:
        """Give back all that is reserved."""
        self._memory.reserved -= self.size
        self.size = 0
