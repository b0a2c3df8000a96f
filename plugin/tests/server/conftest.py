"""A client's connection in memory to an application that reads whole requests."""

from collections.abc import AsyncIterator

import pytest

from tests.server.client_connection import Bodies, Connection


@pytest.fixture
def app() -> Bodies:
    return Bodies()


@pytest.fixture
async def connection(app: Bodies) -> AsyncIterator[Connection]:
    opened = Connection(app)
    yield opened
    await opened.end()
