"""What this process has done since its start, for the keeper's status."""

from dataclasses import asdict, dataclass


@dataclass
class Figures:
    """Counts of calls and batches; `in_flight` goes up and down."""

    in_flight: int = 0
    calls: int = 0  # begun
    failures: int = 0  # ended by ERROR
    batches: int = 0  # predictions that took their requests from a batch, also a batch of one
    batched_requests: int = 0

    def copied(self) -> dict[str, int]:
        """Copy them into a dictionary."""
        return asdict(self)
