import pytest

from tests.limits.virtual_clock import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()
