"""The playground for somebody who logs in: the page may do what its user may do, and says what it may not."""

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from integration_tests.cli.commands import output_of
from integration_tests.playground.models_in_page import DIALOG, card, fill_in, press, show_models
from integration_tests.playground.open_playground import (
    ALERT,
    TEXT,
    Playground,
    asked,
    complaints,
    ready,
    running_playground,
    watch,
)
from integration_tests.support.browser.chromium import NEEDS_CHROMIUM, Page, open_page
from integration_tests.support.conditions import eventually
from integration_tests.support.connector_bodies import openai

pytestmark = [NEEDS_CHROMIUM, pytest.mark.timeout(180)]  # a server, commands and a browser are started
PASSWORD = "correct horse"
KEPT = (
    "new Promise((resolve) => { const open = indexedDB.open('opensearch-ml-stream.playground');"
    "open.onsuccess = () => { const all = open.result.transaction('bodies').objectStore('bodies').getAll();"
    "all.onsuccess = () => resolve(JSON.stringify([all.result, { ...localStorage }])); }; })"
)


@pytest.fixture(scope="module")
def playground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Playground]:
    folder = tmp_path_factory.mktemp("playground")
    with running_playground(folder) as running:
        running.sidecar.create_model(openai(running.provider.url), name="Alpha")
        for role in ("ml_full_access", "ml_read_access", "ml_predict_access"):
            arguments = ("--role", role, "--password", "env:PW", "--store", f"sqlite:///{folder}/store.db")
            output_of("users", "add", role, *arguments, PW=PASSWORD)
        client = running.sidecar.client
        eventually(lambda: client.get("/_ui/", headers={"Connection": "close"}).status_code == 401)
        yield running


@asynccontextmanager
async def logged_in(playground: Playground, folder: Path, user: str) -> AsyncIterator[Page]:
    """The page of that user; the name and the password in the URL are what the browser's own dialog would ask for."""
    async with open_page(folder / "profile") as page:
        with_login = playground.url.replace("://", f"://{user}:{PASSWORD.replace(' ', '%20')}@")
        await page.call("Page.navigate", url=with_login)
        await page.until("document.getElementById('thread') !== null")
        await watch(page)
        await page.resize(1400, 900)
        await page.go_to(playground.url)  # as it is after the dialog: no script may use a URL with a password
        await ready(page)
        yield page


async def test_a_user_who_may_do_everything(playground: Playground, tmp_path: Path) -> None:
    async with logged_in(playground, tmp_path, "ml_full_access") as page:
        assert await asked(page, "words") == TEXT
        await page.until("document.getElementById('live').textContent.includes('Streams in flight0')")
        assert "ml_full_access" in await page.value("document.getElementById('user').innerText")
        await page.until("document.querySelector('.conversation')")
        assert PASSWORD not in await page.value(KEPT)
        assert complaints(page) == []


async def test_whoever_logs_out_is_asked_again(playground: Playground, tmp_path: Path) -> None:
    async with logged_in(playground, tmp_path, "ml_read_access") as page:
        await page.value("document.querySelector('#user a').click()")
        await page.until("location.protocol === 'chrome-error:'")  # where a headless browser would show its dialog
        again = await page.call("Page.navigate", url=playground.url)
        assert "AUTH" in again["errorText"]  # the password is forgotten
        with_other = playground.url.replace("://", f"://ml_full_access:{PASSWORD.replace(' ', '%20')}@")
        await page.call("Page.navigate", url=f"{with_other}logout?user=ml_read_access")
        await page.until("location.pathname === '/_ui/'")
        await page.go_to(playground.url)
        await ready(page)
        assert "ml_full_access" in await page.value("document.getElementById('user').textContent")


async def test_the_command_beside_an_answer_logs_in_by_names(playground: Playground, tmp_path: Path) -> None:
    """It is run as it is shown: whoever pastes it says who calls, and the page shows no password."""
    async with logged_in(playground, tmp_path, "ml_full_access") as page:
        await asked(page, "words")
        await page.value("document.querySelector('.measured').open = true")
        await page.until("document.querySelector('.measured [aria-label=curl]')")
        curl = await page.value("document.querySelector('.measured [aria-label=curl]').textContent")
    assert PASSWORD not in curl
    login = {**os.environ, "MLSTREAM_USER": "ml_predict_access", "MLSTREAM_PASSWORD": PASSWORD}
    run = ["sh", "-c", curl]
    shown = await asyncio.to_thread(subprocess.run, run, capture_output=True, text=True, timeout=60, env=login)
    assert shown.returncode == 0 and '"content":"Light"' in shown.stdout, shown


async def test_a_user_who_may_only_look(playground: Playground, tmp_path: Path) -> None:
    before = len(playground.provider.requests)
    async with logged_in(playground, tmp_path, "ml_read_access") as page:
        await asked(page, "words", "failed")
        seen = await page.value("document.querySelector('[role=alert]').innerText")
        assert "You may not do this." in seen and "a role with the permission" in seen
        await page.value("location.hash = '#models'")
        await page.click("New model")
        await page.until(
            "document.querySelector('#models-panel [role=alert]')?.textContent.includes('create_connector')"
        )
        assert await page.value("document.querySelector('dialog')") is None
    assert len(playground.provider.requests) == before


async def test_a_user_who_may_only_look_is_told_what_tests_and_changes_need(
    playground: Playground, tmp_path: Path
) -> None:
    async with logged_in(playground, tmp_path, "ml_read_access") as page:
        await show_models(page, "Alpha")
        await press(page, "Alpha", "Test")
        await page.until(f"{card('Alpha')}.querySelector('.verdict').innerText.startsWith('It could not be tested.')")
        assert "a role with the permission" in await page.value(f"{card('Alpha')}.querySelector('.verdict').innerText")
        await press(page, "Alpha", "Change")
        await fill_in(page, {"Name": "Mine"})
        await page.click("Save")
        await page.until(f"{DIALOG}.querySelector('[role=alert]')?.textContent.includes('models/update')")
        await page.press("Escape")
        await page.until(f"!{DIALOG}")
        await press(page, "Alpha", "Delete")
        await page.until(DIALOG)
        await page.click("Delete it")
        await page.until(f"{DIALOG}.querySelector('[role=alert]')?.textContent.includes('undeploy_models')")


async def test_a_user_who_may_not_see_models_is_told_so(playground: Playground, tmp_path: Path) -> None:
    async with logged_in(playground, tmp_path, "ml_predict_access") as page:
        await page.until(f"{ALERT}.includes('models/search')")
        await page.until("document.getElementById('live-note').textContent.includes('not available to you')")
