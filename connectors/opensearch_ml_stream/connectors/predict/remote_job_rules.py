"""What the status of a provider's batch job means; apart from jobs, as every command reads the settings."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RemoteJobRules:
    """Settings `plugins.ml_commons.remote_job.*`: fields that may hold a status, and a regular expression per state."""

    status_field: tuple[str, ...] = ("status", "Status", "TransformJobStatus")
    completed: str = "(complete|completed|partiallyCompleted)"
    cancelled: str = "(stopped|cancelled)"
    cancelling: str = "(stopping|cancelling)"
    expired: str = "(expired|timeout)"
    failed: str = "(failed)"
