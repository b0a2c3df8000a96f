"""Limits of the memory that request bodies take: of one body, and of all in a worker."""

from opensearch_ml_stream.connectors.errors import BodyTooLarge, Throttled


class BodyMemory:
    """The bytes that all request bodies have reserved, and their limits. Sizes in bytes."""

    __slots__ = ("max_body_size", "max_total_body_size", "reserved")

    def __init__(self, max_body_size: int, max_total_body_size: int) -> None:
        self.max_body_size = max_body_size
        self.max_total_body_size = max_total_body_size
        self.reserved = 0


class BodyReservation:
    """The `size` that one request has reserved. Call `release` when the body is dropped; a second call does nothing."""

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
        """Take over what another reservation of the same memory has reserved."""
        self.size += other.size
        other.size = 0

    def release(self) -> None:
        """Release all that is reserved."""
        self._memory.reserved -= self.size
        self.size = 0
