"""`/generate-stream` in a real browser: its EventSource, the page, and what the browser itself does for a page."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from integration_tests.cli.commands import output_of
from integration_tests.predict.generate_stream.tutorial import PATH, WORDS, Tutorial, running_tutorial
from integration_tests.support.background_provider import background_provider
from integration_tests.support.browser.chromium import NEEDS_CHROMIUM, Page, open_page
from integration_tests.support.conditions import eventually_async
from integration_tests.support.fake_provider import chunked_stream

pytestmark = NEEDS_CHROMIUM
TEXT = "".join(WORDS)
ANSWER = "document.getElementById('answer').textContent"
STATUS = "document.getElementById('status').textContent"
ERROR = "document.querySelector('[role=alert]').textContent"


@pytest.fixture
async def page(tutorial: Tutorial, tmp_path: Path) -> AsyncIterator[Page]:
    """The page of the sidecar, open in a browser."""
    async with open_page(tmp_path / "profile") as page:
        await page.go_to(f"{tutorial.url}/demo")
        yield page


async def send(page: Page, prompt: str, way: str) -> None:
    await page.value(f"document.getElementById('prompt').value = {json.dumps(prompt)}")
    await page.value(f"document.querySelector('[value={way}]').click()")
    await page.click("Send")


async def test_the_page_shows_the_answer_of_both_ways_an_error_and_a_stop(tutorial: Tutorial, page: Page) -> None:
    for way in ("fetch", "EventSource"):
        await send(page, f"words {way}", way)
        await page.until(f"{STATUS} === 'Done'")
        assert await page.value(ANSWER) == TEXT
        assert tutorial.calls("words", way) == 1
        await send(page, "broken", way)
        await page.until(f"{ERROR}.includes('status 424')")
        assert await page.value(ANSWER) == "What is"
        before = tutorial.provider.disconnects
        await send(page, "endless", way)
        await page.until(f"{ANSWER} === 'What is'")
        await page.click("Stop")
        await eventually_async(lambda before=before: tutorial.provider.disconnects == before + 1)  # type: ignore[misc]
        assert await page.value(STATUS) == "Stopped"
    await send(page, "refused", "fetch")
    await page.until(f"{ERROR}.includes('no such key')")


async def test_the_page_has_names_for_everything_that_it_is_used_by(page: Page) -> None:
    roles = await page.roles()
    assert {"Prompt": "textbox", "Send": "button", "Stop": "button", "Answer": "region"}.items() <= roles.items()


async def test_an_event_source_that_nobody_closes_asks_and_pays_once(tutorial: Tutorial, page: Page) -> None:
    """As a page does that forgets to close it: the browser comes again when the stream has ended."""
    await page.value(
        f"window.texts = []; window.source = new EventSource('{PATH}?prompt=words%20once');"
        "source.onmessage = (event) => { texts.push(event.data); }"
    )
    await page.until("source.readyState === EventSource.CLOSED")  # told so by 204
    assert (await page.value("texts"))[-2:] == [json.dumps({"text": TEXT}), "[DONE]"]
    assert tutorial.calls("words", "once") == 1


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"], ids=["same site, other port", "other site"])
async def test_a_page_of_another_origin_gets_nothing_and_pays_nothing(
    tutorial: Tutorial, tmp_path: Path, host: str
) -> None:
    html = b"<!doctype html><title>elsewhere</title><body>"
    asked = f"'{tutorial.url}?prompt=words%20stolen'"
    with background_provider(chunked_stream([html], content_type="text/html")) as elsewhere:
        async with open_page(tmp_path / "profile") as page:
            await page.go_to(f"http://{host}:{elsewhere.port}/")
            await page.value(
                "window.failed = new Set();"
                f"new EventSource({asked}).onerror = () => failed.add('source');"
                f"const image = new Image(); image.src = {asked}; image.onerror = () => failed.add('image');"
                f"fetch('{tutorial.url}', {{method: 'POST', headers: {{'Content-Type': 'application/json'}},"
                "body: JSON.stringify({prompt: 'words stolen'})}).catch(() => failed.add('fetch')); 0"
            )
            await page.until("failed.size === 3")
    assert tutorial.calls("words", "stolen") == 0


@pytest.mark.timeout(180)  # a server, a command and a browser are started
async def test_a_user_who_logs_in_to_the_page_is_logged_in_for_both_ways(tmp_path: Path) -> None:
    """The name and the password in the URL are what the browser's own dialog would ask for."""
    with running_tutorial(tmp_path) as tutorial:
        store = f"sqlite:///{tmp_path}/store.db"
        arguments = ("--role", "ml_predict_access", "--password", "env:PW", "--store", store)
        await asyncio.to_thread(output_of, "users", "add", "ann", *arguments, PW="correct horse")
        client = tutorial.sidecar.client
        await eventually_async(lambda: client.get(f"{PATH}/demo", headers={"Connection": "close"}).status_code == 401)
        async with open_page(tmp_path / "profile") as page:
            url = f"{tutorial.url}/demo"
            await page.call("Page.navigate", url=url.replace("://", "://ann:correct%20horse@"))
            await page.until("document.getElementById('answer') !== null")
            await page.go_to(url)  # as it is after the dialog: no script may use a URL with a name and a password
            for way in ("fetch", "EventSource"):
                await send(page, f"words {way}", way)
                await page.until(f"{STATUS} === 'Done'")
                assert tutorial.calls("words", way) == 1
