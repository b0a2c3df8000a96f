"""What tests of several parts of the plugin share."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from opensearch_ml_stream.plugin.security import own_gate, secret_hashes
from opensearch_ml_stream.plugin.shared import worker_files
from tests.other_package import Install, installer


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
    monkeypatch.setattr(worker_files, "LOCK_SECONDS", 60)


@pytest.fixture
def cheap_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    """A password is hashed in microseconds, not in 130 ms."""
    monkeypatch.setattr(secret_hashes, "_COST", 2)
    monkeypatch.setattr(secret_hashes, "_PARALLELISM", 1)
    monkeypatch.setattr(own_gate, "_ABSENT_USER_HASH", secret_hashes.hash_password("of nobody"))


@pytest.fixture
def install(tmp_path: Path) -> Iterator[Install]:
    """A function that installs a package of others with an extension."""
    with installer(tmp_path) as install:
        yield install
