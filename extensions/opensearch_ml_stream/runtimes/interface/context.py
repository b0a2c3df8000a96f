"""Which model runs, for what it logs and counts."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from opensearch_ml_stream.runtimes.interface.settings import ModelSettings

model_name_var: ContextVar[str] = ContextVar("model_name")
model_version_var: ContextVar[str] = ContextVar("model_version")


@contextmanager
def model_context(model_settings: ModelSettings) -> Iterator[None]:
    """Name the model for what runs inside."""
    name = model_name_var.set(model_settings.name)
    version = model_version_var.set(model_settings.version or "")
    try:
        yield
    finally:
        model_name_var.reset(name)
        model_version_var.reset(version)
