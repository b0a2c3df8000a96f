"""Models in the playground: made from blueprints, tested, changed, deleted, and allowed to call a server."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from integration_tests.playground.models_in_page import DIALOG, NAMES, card, click, fill_in, press, show_models
from integration_tests.playground.open_playground import (
    ALERT,
    HOSTILE,
    TEXT,
    Playground,
    asked,
    choose,
    complaints,
    opened,
    running_playground,
)
from integration_tests.support.browser.chromium import NEEDS_CHROMIUM, Page
from integration_tests.support.connector_bodies import blueprint_connector, openai
from integration_tests.support.predict_calls import connector

pytestmark = NEEDS_CHROMIUM
KEY = "sk-made-in-the-page"
CLOSED = {
    "plugins.ml_commons.trusted_connector_endpoints_regex": r'["^https://api\\.openai\\.com/.*$"]',
    "plugins.ml_commons.connector.private_ip_enabled": "false",
}
LIMITS = {
    "limits": {"max_streams": 50, "total_timeout_seconds": 60},
    "budgets": [{"tokens": 5000000, "window": "1d"}, {"cost": 3, "window": "7d", "per": "user", "enforcement": "soft"}],
    "prices": {"input": 1, "output": 2},
}


@pytest.fixture
def playground(tmp_path: Path) -> Iterator[Playground]:
    with running_playground(tmp_path) as running:
        yield running


def verdict(name: str) -> str:
    return f"{card(name)}.querySelector('.verdict').innerText"


async def create(page: Page, name: str, endpoint: str) -> None:
    """Fills the dialog of a new model over OpenAI's blueprint, and confirms it."""
    await fill_in(page, {"Provider and kind": "OpenAI chat"})
    await fill_in(page, {"Name": name, "OpenAI key": KEY, "Endpoint": endpoint})
    await page.click("Create")


def models_of(playground: Playground) -> list[dict[str, Any]]:
    models: list[dict[str, Any]] = playground.sidecar.client.get("/_ui/models").raise_for_status().json()["models"]
    return models


async def test_a_model_is_created_tested_used_and_deleted(playground: Playground, tmp_path: Path) -> None:
    async with opened(playground, tmp_path) as page:
        assert await page.value("document.getElementById('no-models').hidden") is False
        await page.value("document.getElementById('create-first').click()")
        await create(page, "Mine", playground.provider.url)
        await page.until(f"{NAMES} === 'Mine' && {verdict('Mine')}.startsWith('It works.')")
        assert "Each step" in await page.value(verdict("Mine"))
        seen = await page.value(f"{verdict('Mine')}.split('\\n')[0]")
        assert seen.endswith("after the request was sent (time to first token).")
        assert playground.provider.requests[-1].headers["authorization"] == f"Bearer {KEY}"
        assert KEY not in await page.value("document.documentElement.innerHTML")
        await press(page, "Mine", "Ask")
        await page.until("document.activeElement.id === 'prompt'")
        assert await asked(page, "words") == TEXT
        await show_models(page, "Mine")
        await press(page, "Mine", "Delete")
        await page.until(DIALOG)
        assert await page.value("document.activeElement.textContent") == "Cancel"  # a stray Enter deletes nothing
        await page.click("Delete it")
        await page.until(f"{NAMES} === ''")
        await page.until("document.activeElement.textContent === 'New model'")  # its button is no more
        assert complaints(page) == []
    for kind in ("models", "connectors"):
        found = playground.sidecar.client.post(f"/_plugins/_ml/{kind}/_search", json={"query": {"match_all": {}}})
        assert found.json()["hits"]["hits"] == []


async def test_the_keyboard_stays_where_it_is_when_models_are_listed_again(
    playground: Playground, tmp_path: Path
) -> None:
    model_id = playground.sidecar.create_model(openai(playground.provider.url), name="Mine")
    async with opened(playground, tmp_path) as page:
        await show_models(page, "Mine")
        await page.value(f"{card('Mine')}.querySelector('.danger').focus()")
        change = {"description": "says something else now"}  # so that another card takes the place of this one
        playground.sidecar.client.put(f"/_plugins/_ml/models/{model_id}", json=change).raise_for_status()
        await page.value("dispatchEvent(new HashChangeEvent('hashchange'))")  # reads the models
        await page.until(f"{card('Mine')}.innerText.includes('{change['description']}')")
        assert await page.value("document.activeElement.ariaLabel") == "Delete Mine"


async def test_what_is_wrong_with_a_new_model_is_said_in_its_dialog(playground: Playground, tmp_path: Path) -> None:
    async with opened(playground, tmp_path) as page:
        await show_models(page)
        await page.click("New model")
        await create(page, "Mine", f"{playground.provider.url}/v1")
        await page.until(f"{ALERT}.includes('leave /v1 out')")
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


async def test_what_a_blueprint_needs_is_marked_and_nothing_else(playground: Playground, tmp_path: Path) -> None:
    async with opened(playground, tmp_path) as page:
        await show_models(page)
        await page.click("New model")
        await fill_in(page, {"Provider and kind": "Bedrock Converse"})
        fields = await page.value(
            "[...document.querySelectorAll('dialog .fields label')].map((label) =>"
            "[label.textContent, label.control.required, label.control.type, label.control.placeholder])"
        )
        assert fields == [
            ["Name (required)", True, "text", ""],
            ["Access key (required)", True, "password", ""],
            ["Secret key (required)", True, "password", ""],
            ["Session token", False, "password", ""],
            ["Region", False, "text", ""],
            ["Model", False, "text", ""],
            ["Max tokens", False, "text", ""],
            ["Endpoint", False, "text", ""],
        ]
        await page.click("Create")  # the browser asks for what is missing
        await page.until("document.activeElement.matches('dialog input[type=password]')")
        assert models_of(playground) == []


async def test_a_server_of_ones_own_is_allowed_on_the_way(tmp_path: Path) -> None:
    with running_playground(tmp_path, **CLOSED) as playground:
        async with opened(playground, tmp_path) as page:
            await show_models(page)
            await page.click("New model")
            await create(page, "Mine", playground.provider.url)
            await page.until(f"{ALERT}.includes('Models may not call {playground.provider.url} yet')")
            assert "have to be added by hand" in await page.value(f"{DIALOG}.innerText")
            await page.click(f"Allow {playground.provider.url} and go on")
            await page.until(f"{NAMES} === 'Mine' && {verdict('Mine')}.startsWith('It works.')")
        settings = playground.sidecar.client.get("/_plugins/_ml/_settings?flat_settings=true").json()["persistent"]
        assert len(settings["plugins.ml_commons.trusted_connector_endpoints_regex"]) == 2


REFUSES = """(() => {
  const real = window.fetch;
  const error = { reason: 'no permissions for [cluster:admin/settings/update]' };
  const refused = () => Promise.resolve(new Response(JSON.stringify({ error, status: 403 }), { status: 403 }));
  window.fetch = (path, options) => (path === 'servers' ? refused() : real(path, options));
})()"""


async def test_who_may_not_allow_servers_is_told_who_can(tmp_path: Path) -> None:
    """The refusal is played: of the sidecar's own roles, those that may create a model may allow servers too."""
    with running_playground(tmp_path, **CLOSED) as playground:
        async with opened(playground, tmp_path) as page:
            await show_models(page)
            await page.value(REFUSES)
            await page.click("New model")
            await create(page, "Mine", playground.provider.url)
            await page.until(f"{ALERT}.includes('Models may not call')")
            await page.click(f"Allow {playground.provider.url} and go on")
            await page.until(f"{ALERT}.startsWith('You may not allow servers')")
            assert f"endpoints allow {playground.provider.url}" in await page.value(ALERT)
        assert models_of(playground) == []


async def test_limits_and_budgets_are_listed_in_words_and_changed_in_fields(
    playground: Playground, tmp_path: Path
) -> None:
    model_id = playground.sidecar.create_model(openai(playground.provider.url), name="Alpha", _sidecar=LIMITS)
    path = f"/_plugins/_ml/models/{model_id}"
    async with opened(playground, tmp_path) as page:
        await show_models(page, "Alpha")
        facts = await page.value(f"{card('Alpha')}.querySelector('.facts').innerText")
        assert "50 answers at once; ends within 60 s" in facts
        assert "5,000,000 tokens a day; a cost of 3 in 7 days for each user, which refuses nothing" in facts
        await press(page, "Alpha", "Change")
        await page.until(DIALOG)
        await page.click("Save")  # without a change
        await page.until(f"!{DIALOG}")
        assert playground.sidecar.client.get(path).json()["_sidecar"] == LIMITS
        await click(page, "Alpha", "Change")
        await fill_in(page, {"Name": "Omega", "Temperature": "0.5", "Answers at once": "", "Seconds of silence": "2.5"})
        await page.value("document.querySelectorAll('.budget button')[1].click()")
        await page.value("document.querySelector('.budget [name=amount]').value = '70'")
        await page.click("Save")
        await page.until(f"{NAMES} === 'Omega'")
        await page.until("document.activeElement.textContent === 'Change'")
        assert complaints(page) == []
    model = playground.sidecar.client.get(path).json()
    assert model["_sidecar"] == {
        "limits": {"between_chunks_timeout_seconds": 2.5, "total_timeout_seconds": 60},
        "budgets": [{"tokens": 70, "window": "1d"}],
        "prices": LIMITS["prices"],
    }
    connector = playground.sidecar.client.get(f"/_plugins/_ml/connectors/{model['connector_id']}").json()
    assert connector["parameters"]["temperature"] == "0.5"


async def test_a_new_credential_replaces_the_one_that_nobody_is_shown(playground: Playground, tmp_path: Path) -> None:
    playground.sidecar.create_model(openai(playground.provider.url), name="Alpha")
    async with opened(playground, tmp_path) as page:
        await show_models(page, "Alpha")
        await press(page, "Alpha", "Change")
        await page.until(DIALOG)
        assert await page.value("document.querySelector('dialog input[type=password]').value") == ""
        await fill_in(page, {"OpenAI key": KEY})
        await page.click("Save")
        await page.until(f"!{DIALOG}")
        await click(page, "Alpha", "Test")
        await page.until(f"{verdict('Alpha')}.startsWith('It works.')")
        assert playground.provider.requests[-1].headers["authorization"] == f"Bearer {KEY}"


async def test_a_model_that_does_not_work_is_told_with_what_to_do(playground: Playground, tmp_path: Path) -> None:
    playground.sidecar.create_model(openai("http://127.0.0.1:9"), name="Alpha")
    playground.sidecar.create_model(connector(playground.provider.url), name="Other")
    async with opened(playground, tmp_path) as page:
        await show_models(page, "Alpha", "Other")
        await press(page, "Alpha", "Test")
        await page.until(f"{verdict('Alpha')}.startsWith('It does not work. Connect:')")
        assert "What to do:" in await page.value(verdict("Alpha"))
        await press(page, "Other", "Test")
        await page.until(f"{verdict('Other')}.startsWith('It does not work. Spec:')")
        assert "`" not in await page.value(verdict("Other"))


async def test_texts_of_an_embedding_model_are_compared(playground: Playground, tmp_path: Path) -> None:
    embedding = blueprint_connector("openai-embedding", playground.provider.url)
    playground.sidecar.create_model(embedding, name="Vectors")
    async with opened(playground, tmp_path) as page:
        await show_models(page, "Vectors")
        await press(page, "Vectors", "Test")
        await page.until(f"{verdict('Vectors')}.startsWith('It works: 16 dimensions')")
        await page.value("document.querySelector('.embeddings').closest('details').open = true")
        await page.value("document.querySelector('.embeddings textarea').value = 'a text\\n\\nopposite\\n another '")
        await page.click("Compare")
        await page.until("document.querySelector('.cosine')")
        assert playground.provider.requests[-1].json()["input"] == ["a text", "opposite", "another"]
        cells = await page.value("[...document.querySelectorAll('.cosine')].map((cell) => cell.textContent)")
        assert cells == ["1", "-1", "1", "-1", "1", "-1", "1", "-1", "1"]
        first = await page.value("document.querySelector('.vectors').innerText")
        assert "[0, 0.125, 0.25, 0.375, 0.5, 0.625, …]" in first
        assert "16 dimensions" in await page.value("document.querySelector('.embeddings [role=status]').textContent")
        await page.value("document.querySelector('.embeddings textarea').value = ' '")
        await page.click("Compare")
        await page.until(f"{ALERT} === 'Write at least one text.'")
        assert complaints(page) == []


async def test_names_and_texts_of_models_are_never_markup(playground: Playground, tmp_path: Path) -> None:
    body = {**openai(playground.provider.url), "parameters": {HOSTILE: HOSTILE, "endpoint": playground.provider.url}}
    playground.sidecar.create_model(body, name=HOSTILE, description=f"`{HOSTILE}` {HOSTILE}")
    async with opened(playground, tmp_path) as page:
        await show_models(page, HOSTILE)
        await press(page, HOSTILE, "Change")
        await page.until(DIALOG)
        assert HOSTILE in await page.value("document.querySelector('dialog').textContent")
        await page.press("Escape")
        await page.until(f"!{DIALOG}")
        await click(page, HOSTILE, "Delete")
        await page.until(f"{DIALOG}?.textContent.includes('<b>bold</b>')")
        assert await page.value("document.querySelectorAll('main img, main b, dialog img, dialog b').length") == 0
        assert complaints(page) == []


@pytest.mark.parametrize("width", [320, 1400])
async def test_no_width_scrolls_to_the_side(playground: Playground, tmp_path: Path, width: int) -> None:
    playground.sidecar.create_model(openai(playground.provider.url), name="Alpha" * 30, _sidecar=LIMITS)
    async with opened(playground, tmp_path) as page:
        await page.resize(width, 800)
        await show_models(page, "Alpha" * 30)
        await press(page, "Alpha" * 30, "Test")
        await page.until("document.querySelector('.works')")
        await page.value("document.querySelectorAll('.model details').forEach((part) => { part.open = true; })")
        await page.until("document.querySelector('.code-part pre').textContent")
        assert await page.value("document.documentElement.scrollWidth") <= width
        await press(page, "Alpha" * 30, "Change")
        await page.until(DIALOG)
        await page.value("document.querySelectorAll('dialog details').forEach((part) => { part.open = true; })")
        assert await page.value(f"{DIALOG}.scrollWidth === {DIALOG}.clientWidth")
        await page.press("Escape")
        await page.until("document.activeElement.textContent === 'Change'")  # where the keyboard was
