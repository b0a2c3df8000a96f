"""A model's own metrics: they may be registered and logged, and are not collected without MLServer."""

from collections.abc import Iterator
from contextlib import contextmanager

SELDON_MODEL_NAME_LABEL = "model_name"
SELDON_MODEL_VERSION_LABEL = "model_version"


class Metric:
    """Takes what a histogram takes, and keeps nothing."""

    def labels(self, *_: object, **__: object) -> "Metric":
        """Take labels."""
        return self

    def observe(self, amount: float, exemplar: object = None) -> None:
        """Take a value."""

    @contextmanager
    def time(self) -> Iterator[None]:
        """Take the time of what runs inside."""
        yield


def register(name: str, description: str) -> Metric:
    """Take a new metric."""
    return Metric()


def log(**metrics: float) -> None:
    """Take the values of metrics by their names."""
