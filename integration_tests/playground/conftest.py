"""A playground with two models, and its page in a browser."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from integration_tests.playground.open_playground import Playground, opened, running_playground
from integration_tests.support.browser.chromium import Page
from integration_tests.support.connector_bodies import openai


@pytest.fixture(scope="module")
def playground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Playground]:
    """Models Alpha and Beta, of the same provider."""
    with running_playground(tmp_path_factory.mktemp("playground")) as running:
        for name in ("Alpha", "Beta"):
            running.sidecar.create_model(openai(running.provider.url), name=name)
        yield running


@pytest.fixture
async def page(playground: Playground, tmp_path: Path) -> AsyncIterator[Page]:
    """The page, ready to be used."""
    async with opened(playground, tmp_path) as page:
        yield page
