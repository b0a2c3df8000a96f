"""Conversations that the browser keeps: a reload, the list, names, files, and what is not among them."""

import base64
import json
from pathlib import Path

from integration_tests.playground.open_playground import (
    ANSWER,
    ANSWERS,
    CONVERSATIONS,
    OUTCOMES,
    QUESTIONS,
    TEXT,
    Playground,
    asked,
    choose,
    complaints,
    fill,
    finished,
    ready,
    send,
)
from integration_tests.support.browser.chromium import NEEDS_CHROMIUM, Page
from integration_tests.support.conditions import eventually_async

pytestmark = NEEDS_CHROMIUM
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
ATTACHED = "[...document.querySelectorAll('#attachments img, #attachments .file')].map(e => e.alt ?? e.textContent)"


async def reload(page: Page) -> None:
    await page.value("delete document.documentElement.dataset.ready")
    await page.call("Page.reload")
    await ready(page)


async def act(page: Page, choice: str) -> None:
    """Chooses what is done with the first conversation of the list."""
    await page.value(
        f"(() => {{ const more = document.querySelector('.more'); more.value = {json.dumps(choice)};"
        "more.dispatchEvent(new Event('change')); })()"
    )


async def test_a_reload_keeps_the_conversation_the_models_the_parameters_and_what_was_typed(
    playground: Playground, page: Page
) -> None:
    await choose(page, "Beta", "Alpha")
    await page.click("Parameters")
    await fill(page, "setting-temperature", "0.5")
    await page.click("Use these")
    await asked(page, "thinking")
    await asked(page, "refused", "failed")
    before = await page.value(f"[{ANSWERS}, {QUESTIONS}, {OUTCOMES}]")
    await fill(page, "prompt", "not sent yet")
    await page.until(f"{CONVERSATIONS}.length === 1")
    await reload(page)
    assert await page.value(f"[{ANSWERS}, {QUESTIONS}, {OUTCOMES}]") == before
    assert await page.value(
        "[...document.querySelectorAll('#choices select')].map(e => e.selectedOptions[0].text)"
    ) == [
        "Beta",
        "Alpha",
    ]
    assert await page.value("document.getElementById('parameters').textContent") == "Parameters 1 set"
    assert await page.value("document.getElementById('prompt').value") == "not sent yet"
    assert "did not accept" in await page.value("document.querySelector('[role=alert]').innerText")
    assert await page.value("document.querySelector('.measured > summary').textContent.includes('to the first token')")
    await asked(page, "words")
    assert playground.messages()[0]["content"] == "thinking"
    assert playground.provider.requests[-1].json()["temperature"] == 0.5


async def test_what_had_come_before_a_reload_is_kept(page: Page) -> None:
    await send(page, "endless")
    await page.until(f"{ANSWER} === 'One'")
    await page.until(f"{CONVERSATIONS}.length === 1")
    await eventually_async(lambda: page.value(KEPT_TEXT + ".then((text) => text === 'One')"))
    await reload(page)
    await page.until(f"{ANSWER} === 'One'")
    assert await page.value(OUTCOMES) == ["stopped"]


KEPT_TEXT = (
    "import(new URL('static/conversation_store.js', location.href)).then(async ({ ConversationStore }) => {"
    "const store = new ConversationStore(); const [head] = await store.heads();"
    "return (await store.load(head.id)).rounds[0].answers[0].text; })"
)


async def test_conversations_are_listed_opened_renamed_and_deleted(playground: Playground, page: Page) -> None:
    await asked(page, "words first")
    await page.click("New conversation")
    await page.until(f"{QUESTIONS}.length === 0")
    await asked(page, "words second")
    await page.until(f"{CONVERSATIONS}.join() === 'words second,words first'")
    await page.click("words first")
    await page.until(f"{QUESTIONS}.join() === 'words first'")
    await act(page, "Rename")
    await page.until("document.querySelector('dialog[open]')")
    await fill(page, "new-title", "The sky")
    await page.click("Rename")
    await page.until(f"{CONVERSATIONS}.includes('The sky')")
    await asked(page, "words third")
    assert len(playground.messages()) == 3
    await page.until(f"{CONVERSATIONS}.length === 2")
    await act(page, "Delete")
    await page.until("document.activeElement.textContent === 'Cancel'")  # a stray Enter deletes nothing
    await page.click("Delete it")
    await page.until(f"{CONVERSATIONS}.length === 1")
    await reload(page)
    await page.until(f"{CONVERSATIONS}.length === 1")
    assert complaints(page) == []


async def test_a_conversation_is_exported_as_json_and_as_markdown(page: Page, tmp_path: Path) -> None:
    await page.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    await asked(page, "thinking")
    await page.until(f"{CONVERSATIONS}.length === 1")
    await act(page, "Export as Markdown")
    await eventually_async(lambda: (tmp_path / "thinking.md").exists())
    text = (tmp_path / "thinking.md").read_text()
    assert text.startswith("# thinking\n\n## You\n\nthinking\n\n## Alpha\n\n> Hm, air.\n\nLook.\n\nCalls `weather`:")
    await act(page, "Export as JSON")
    await eventually_async(lambda: (tmp_path / "thinking.json").exists())
    exported = json.loads((tmp_path / "thinking.json").read_text())
    assert exported["rounds"][0]["answers"][0]["text"] == "Look."


async def attach(page: Page, *files: Path) -> None:
    document = (await page.call("DOM.getDocument"))["root"]["nodeId"]
    node = (await page.call("DOM.querySelector", nodeId=document, selector="#files"))["nodeId"]
    await page.call("DOM.setFileInputFiles", nodeId=node, files=[str(file) for file in files])


async def test_images_and_files_are_sent_as_parts_and_seen_in_the_thread(
    playground: Playground, page: Page, tmp_path: Path
) -> None:
    image, file = tmp_path / "sky.png", tmp_path / "notes.txt"
    image.write_bytes(PIXEL)
    file.write_text("It is blue.")
    await attach(page, image, file)
    await page.until(f"{ATTACHED}.join() === 'sky.png,notes.txt'")
    await asked(page, "words of it")
    picture, notes, text = playground.messages()[0]["content"]
    assert base64.b64decode(picture["image_url"]["url"].removeprefix("data:image/png;base64,")) == PIXEL
    assert (notes["type"], notes["file"]["filename"]) == ("file", "notes.txt")
    assert text == {"type": "text", "text": "words of it"}
    assert await page.value("document.querySelector('.question img').naturalWidth") == 1
    assert await page.value(f"{ATTACHED}.length") == 0
    await asked(page, "words more")
    assert playground.messages()[0]["content"][0] == picture
    assert complaints(page) == []


async def test_a_pasted_and_a_dropped_file_are_attached(page: Page) -> None:
    event = (
        "(kind, name) => { const data = new DataTransfer(); data.items.add(new File(['x'], name));"
        "const options = { clipboardData: data, dataTransfer: data, bubbles: true, cancelable: true };"
        "const event = kind === 'paste' ? new ClipboardEvent(kind, options) : new DragEvent(kind, options);"
        "document.getElementById('prompt').dispatchEvent(event); }"
    )
    await page.value(f"({event})('paste', 'pasted.txt')")
    await page.until(f"{ATTACHED}.join() === 'pasted.txt'")
    await page.value(f"({event})('drop', 'dropped.txt')")
    await page.until(f"{ATTACHED}.join() === 'pasted.txt,dropped.txt'")
    await page.value("document.querySelector('#attachments button').click()")
    await page.until(f"{ATTACHED}.join() === 'dropped.txt'")


async def test_a_file_that_is_too_large_is_refused_with_its_name(page: Page, tmp_path: Path) -> None:
    large = tmp_path / "large.bin"
    large.write_bytes(bytes(7 * 1024 * 1024))
    await attach(page, large)
    await page.until(
        "document.querySelector('#composer [role=alert]')?.textContent.includes('“large.bin” is too large')"
    )
    assert await page.value(f"{ATTACHED}.length") == 0


async def test_the_answer_that_comes_is_stopped_by_another_conversation(playground: Playground, page: Page) -> None:
    before = playground.provider.disconnects
    await send(page, "endless")
    await page.until(f"{ANSWER} === 'One'")
    await page.click("New conversation")
    await eventually_async(lambda: playground.provider.disconnects == before + 1)
    await page.until(f"{QUESTIONS}.length === 0")
    assert await asked(page, "words") == TEXT
    await finished(page)
    await page.click("endless")
    await page.until(f"{ANSWER} === 'One'")
    assert await page.value(OUTCOMES) == ["stopped"]
