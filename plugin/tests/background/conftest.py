"""A task that is broken once."""

import pytest

from tests.background.broken_task import BrokenTask


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> BrokenTask:
    return BrokenTask(monkeypatch, caplog)
