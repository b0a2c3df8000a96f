"""What tests of several parts of the plugin share."""

import logging
from collections.abc import Iterator

import pytest

from opensearch_ml_stream.plugin import locked_file


@pytest.fixture
def restored_logging() -> Iterator[None]:
    """Python's logging is afterwards as it was."""
    root = logging.getLogger()
    handlers = root.handlers[:]
    names = ("", "opensearch_ml_stream", "opensearch_ml_stream.access", "opensearch")
    levels = {name: logging.getLogger(name).level for name in names}
    yield
    root.handlers[:] = handlers
    logging.captureWarnings(capture=False)
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


@pytest.fixture
def patient_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Locks of shared files are waited for, however slow the machine is on which many threads want them."""
    monkeypatch.setattr(locked_file, "LOCK_SECONDS", 60)
