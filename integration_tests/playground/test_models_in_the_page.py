"""Creating a model from a blueprint and deleting it, in the playground."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from integration_tests.playground.open_playground import (
    ALERT,
    TEXT,
    Playground,
    asked,
    choose,
    complaints,
    fill,
    opened,
    running_playground,
)
from integration_tests.support.browser.chromium import NEEDS_CHROMIUM, Page
from integration_tests.support.connector_bodies import blueprint_connector
from integration_tests.support.predict_calls import connector

pytestmark = NEEDS_CHROMIUM
KEY = "sk-made-in-the-page"
NAMES = "[...document.getElementById('model').options].map((option) => option.text).join()"


@pytest.fixture
def playground(tmp_path: Path) -> Iterator[Playground]:
    with running_playground(tmp_path) as running:
        yield running


async def fill_blueprint(page: Page, name: str, endpoint: str) -> None:
    """Fills the dialog of a new model over OpenAI's blueprint."""
    await page.until("document.querySelector('dialog[open]')")
    await page.value("document.getElementById('blueprint').value = 'openai-chat'")
    await page.value("document.getElementById('blueprint').dispatchEvent(new Event('change'))")
    for field, text in {"model_name": name, "openAI_key": KEY, "endpoint": endpoint}.items():
        await fill(page, f"new-{field}", text)
    await page.click("Create")


async def test_a_model_is_created_used_and_deleted(playground: Playground, tmp_path: Path) -> None:
    async with opened(playground, tmp_path) as page:
        assert await page.value("document.getElementById('no-models').hidden") is False
        await page.value("document.getElementById('create-first').click()")
        await page.until("document.getElementById('models-panel').checkVisibility()")
        await page.click("New from a blueprint")
        await fill_blueprint(page, "Mine", playground.provider.url)
        await page.until(f"{NAMES} === 'Mine'")
        assert await page.value("document.querySelector('dialog')") is None
        await page.click("Ask")
        await page.until("!document.getElementById('send').disabled")
        assert await asked(page, "words") == TEXT
        assert playground.provider.requests[-1].headers["authorization"] == f"Bearer {KEY}"
        assert KEY not in await page.value("document.documentElement.innerHTML")
        await page.value("document.getElementById('models-tab').click()")
        await page.until("document.querySelector('.danger').checkVisibility()")
        await page.click("Delete")
        assert await page.value("document.activeElement.textContent") == "Cancel"  # a stray Enter deletes nothing
        await page.click("Delete it")
        await page.until(f"{NAMES} === ''")
        assert await page.value("document.getElementById('no-models').hidden") is False
        assert complaints(page) == []
    for kind in ("models", "connectors"):
        found = playground.sidecar.client.post(f"/_plugins/_ml/{kind}/_search", json={"query": {"match_all": {}}})
        assert found.json()["hits"]["hits"] == []


async def test_what_is_wrong_with_a_new_model_is_said_in_its_dialog(playground: Playground, tmp_path: Path) -> None:
    async with opened(playground, tmp_path) as page:
        await page.value("location.hash = '#models'")
        await page.click("New from a blueprint")
        await fill_blueprint(page, "Mine", "https://elsewhere.example")
        await page.until(f"{ALERT} !== ''")
        assert await page.value("document.querySelector('dialog [role=alert]') !== null")
        assert KEY not in await page.value(ALERT)
        await page.press("Escape")
        await page.until("document.querySelector('dialog') === null")
        assert await page.value(NAMES) == ""


async def test_a_model_of_embeddings_is_not_asked(playground: Playground, tmp_path: Path) -> None:
    embedding = blueprint_connector("openai-embedding", playground.provider.url)
    playground.sidecar.create_model(embedding, name="Vectors")
    async with opened(playground, tmp_path) as page:
        await page.until("document.getElementById('model-note').textContent.includes('Vectors makes embeddings')")
        assert await page.value("document.getElementById('send').disabled")


async def test_a_model_that_does_not_converse_is_told_so_in_a_sentence(playground: Playground, tmp_path: Path) -> None:
    playground.sidecar.create_model(connector(playground.provider.url), name="Other")
    async with opened(playground, tmp_path) as page:
        await choose(page, "Other")
        await asked(page, "words", "failed")
        assert "The provider did not answer as it should." in await page.value(ALERT)
