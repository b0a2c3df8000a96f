"""The memory that request bodies may take: one, and all of a worker together."""

from opensearch_ml_stream.connectors.errors import BodyTooLarge, Throttled


class BodyBudget:
    """A sum of bytes, of which each request reserves what it holds of its body. Sizes in bytes."""

    __slots__ = ("max_body_size", "max_total_body_size", "reserved")

    def __init__(self, max_body_size: int, max_total_body_size: int) -> None:
        self.max_body_size = max_body_size
        self.max_total_body_size = max_total_body_size
        self.reserved = 0


class BodyReservation:
    """The `size` that one request has reserved. `release` it when the body is let go; a second time does nothing."""

    __slots__ = ("_budget", "max_body_size", "size")

    def __init__(self, budget: BodyBudget) -> None:
        self.max_body_size = budget.max_body_size
        self._budget = budget
        self.size = 0

    def __enter__(self) -> "BodyReservation":
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def add(self, size: int) -> None:
        """Reserve `size` bytes more.

        Throttled if the bodies of all requests would be larger than their limit, BodyTooLarge if this one is.
        """
        budget = self._budget
        if self.size + size > budget.max_total_body_size:
            raise BodyTooLarge(
                f"The bodies of all requests in this worker may be {budget.max_total_body_size} bytes together "
                "(setting opensearch_ml_stream.max_total_body_size); this one is larger",
                type="content_too_long_exception",
            )
        if budget.reserved + size > budget.max_total_body_size:
            raise Throttled(
                f"The bodies of all requests in this worker may be {budget.max_total_body_size} bytes together "
                "(setting opensearch_ml_stream.max_total_body_size); this one does not fit, send it again",
                type="rejected_execution_exception",
                retry_after="1",
            )
        budget.reserved += size
        self.size += size

    def cover(self, size: int) -> None:
        """Reserve what is missing to `size` bytes; errors as of `add`."""
        self.add(max(size - self.size, 0))

    def take_over(self, other: "BodyReservation") -> None:
        """Reserve what another has reserved of the same budget, in its place."""
        self.size += other.size
        other.size = 0

    def release(self) -> None:
        """Give back all that is reserved."""
        self._budget.reserved -= self.size
        self.size = 0
