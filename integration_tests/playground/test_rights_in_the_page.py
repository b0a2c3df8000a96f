"""The playground for somebody who logs in: the page may do what its user may do, and says what it may not."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from integration_tests.cli.commands import output_of
from integration_tests.playground.open_playground import (
    ALERT,
    ANSWER,
    TEXT,
    Playground,
    complaints,
    finished,
    running_playground,
    send,
    watch,
)
from integration_tests.support.browser.chromium import NEEDS_CHROMIUM, Page, open_page
from integration_tests.support.conditions import eventually
from integration_tests.support.connector_bodies import openai

pytestmark = [NEEDS_CHROMIUM, pytest.mark.timeout(180)]  # a server, commands and a browser are started
PASSWORD = "correct horse"


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
        await page.until("document.getElementById('answers') !== null")
        await watch(page)
        await page.go_to(playground.url)  # as it is after the dialog: no script may use a URL with a password
        yield page


async def test_a_user_who_may_do_everything(playground: Playground, tmp_path: Path) -> None:
    async with logged_in(playground, tmp_path, "ml_full_access") as page:
        await page.until("document.querySelector('.answer')")
        await send(page, "words")
        await finished(page, "Done")
        assert await page.value(ANSWER) == TEXT
        await page.until("document.getElementById('live').innerText.includes('Streams in flight\\n0')")
        assert complaints(page) == []


async def test_the_code_beside_an_answer_logs_in_by_names(playground: Playground, tmp_path: Path) -> None:
    """Both are run as they are shown: whoever pastes them says who calls, and the page shows no password."""
    async with logged_in(playground, tmp_path, "ml_full_access") as page:
        await page.until("document.querySelector('.answer')")
        await send(page, "words")
        await finished(page, "Done")
        _, curl, python = await page.value("[...document.querySelectorAll('.code pre')].map(e => e.textContent)")
    assert PASSWORD not in curl + python
    login = {**os.environ, "MLSTREAM_USER": "ml_predict_access", "MLSTREAM_PASSWORD": PASSWORD}
    for command, text in ((["sh", "-c", curl], '"content":"Light"'), ([sys.executable, "-c", python], TEXT)):
        shown = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=60, env=login)
        assert shown.returncode == 0 and text in shown.stdout, shown


async def test_a_user_who_may_only_look(playground: Playground, tmp_path: Path) -> None:
    before = len(playground.provider.requests)
    async with logged_in(playground, tmp_path, "ml_read_access") as page:
        await page.until("document.querySelector('.answer')")
        await page.click("Send")
        await finished(page, "Failed")
        assert "no permissions for" in await page.value(ALERT)
        await page.click("New from a blueprint")
        await page.until("(document.querySelector('#problems [role=alert]')?.textContent ?? '').includes('status 403')")
        assert await page.value("document.querySelector('dialog')") is None
    assert len(playground.provider.requests) == before


async def test_a_user_who_may_not_see_models_is_told_so(playground: Playground, tmp_path: Path) -> None:
    async with logged_in(playground, tmp_path, "ml_predict_access") as page:
        await page.until(f"{ALERT}.includes('models/search')")
        await page.until("document.getElementById('live-note').textContent.includes('not available to you')")
