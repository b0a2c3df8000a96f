"""Answers in the thread, in a real browser: streams, errors, two models at once, tools, another try."""

import asyncio
import json
import subprocess
from pathlib import Path

import pytest
from integration_tests.playground.open_playground import (
    ALERT,
    ANSWER,
    ANSWERS,
    HOSTILE,
    OUTCOMES,
    QUESTIONS,
    TEXT,
    Playground,
    asked,
    choose,
    complaints,
    fill,
    finished,
    opened,
    provider_noticed,
    running_playground,
    send,
)
from integration_tests.support.browser.chromium import NEEDS_CHROMIUM, Page
from integration_tests.support.connector_bodies import anthropic, openai

pytestmark = NEEDS_CHROMIUM
SUMMARY = "[...document.querySelectorAll('.measured > summary')].at(-1).textContent"
BUSY = "[...document.querySelectorAll('.answer .text')].at(-1).getAttribute('aria-busy')"
STATE = "[...document.querySelectorAll('.state')].at(-1).textContent"


async def test_the_text_is_seen_growing_and_measured(playground: Playground, page: Page) -> None:
    await send(page, "gated")
    await page.until(f"{ANSWER} === 'One'")
    assert (await page.value(STATE), await page.value(BUSY)) == ("Answering", "true")
    playground.gates[-1].open()
    await finished(page)
    assert (await page.value(ANSWER), await page.value(BUSY)) == ("One two", "false")
    assert await asked(page, "slowly") == TEXT * 6
    summary = await page.value(SUMMARY)
    assert "to the first token" in summary and "tokens/s" in summary and "30 tokens" in summary
    await page.value("[...document.querySelectorAll('.measured')].at(-1).open = true")
    await page.until("document.querySelector('.measured .figures')")
    assert "Input tokens\n5" in await page.value("document.querySelector('.measured .figures').innerText")
    assert "on average" in await page.value("document.querySelector('.plot').getAttribute('aria-label')")
    assert complaints(page) == []


async def test_a_conversation_goes_on_with_its_answers(playground: Playground, page: Page) -> None:
    await asked(page, "words first")
    await asked(page, "words second")
    turns = [(turn["role"], turn["content"]) for turn in playground.messages()]
    assert turns == [("user", "words first"), ("assistant", TEXT), ("user", "words second")]
    assert await page.value(ANSWERS) == [TEXT, TEXT]
    assert await page.value(QUESTIONS) == ["words first", "words second"]


async def test_stop_ends_the_call_of_the_provider_and_keeps_the_text(playground: Playground, page: Page) -> None:
    before = playground.provider.disconnects
    await send(page, "endless")
    await page.until(f"{ANSWER} === 'One'")
    await page.until("document.getElementById('live').textContent.includes('Streams in flight1')")
    await page.click("Stop")
    await provider_noticed(playground, before + 1)
    await finished(page, "stopped")
    assert await page.value(ANSWER) == "One"
    assert await page.value(ALERT) == ""
    await page.until("document.getElementById('live').textContent.includes('Streams in flight0')")
    assert complaints(page) == []


@pytest.mark.parametrize(
    ("prompt", "sentences", "text"),
    [
        ("refused", ["The provider did not accept the model's key.", "under Models", "“no such key”"], ""),
        ("broken", ["The answer is not whole."], "One"),
    ],
)
async def test_an_error_is_a_sentence_beside_the_text_before_it_and_what_was_said_is_folded(
    page: Page, prompt: str, sentences: list[str], text: str
) -> None:
    assert await asked(page, prompt, "failed") == text
    seen = await page.value("document.querySelector('[role=alert]').innerText")
    assert all(sentence in seen for sentence in sentences), seen
    assert '{"' not in seen
    assert '{"error"' in await page.value(ALERT)
    assert await asked(page, "words") == TEXT


async def test_a_question_that_failed_is_not_part_of_the_next_one(playground: Playground, page: Page) -> None:
    await asked(page, "refused", "failed")
    await asked(page, "words")
    assert [turn["content"] for turn in playground.messages()] == ["words"]


async def test_a_sidecar_that_ends_is_an_alert_too(tmp_path: Path) -> None:
    with running_playground(tmp_path) as playground:
        playground.sidecar.create_model(openai(playground.provider.url), name="Alpha")
        async with opened(playground, tmp_path) as page:
            await asyncio.to_thread(playground.sidecar.stop)
            await send(page, "words")
            await page.until(f"{ALERT}.includes('The sidecar does not respond')")


async def test_two_models_answer_side_by_side_each_with_its_own_turns(playground: Playground, page: Page) -> None:
    await choose(page, "Alpha", "Beta")
    before = len(playground.provider.requests)
    await asked(page, "words first")
    assert await page.value(ANSWERS) == [TEXT, TEXT]
    left, right = await page.value("[...document.querySelectorAll('.answer')].map(e => e.getBoundingClientRect().left)")
    assert left < right
    await asked(page, "words second")
    asked_for = [[turn["content"] for turn in one.json()["messages"]] for one in playground.provider.requests[before:]]
    assert asked_for == [["words first"]] * 2 + [["words first", TEXT, "words second"]] * 2
    disconnects = playground.provider.disconnects
    await send(page, "endless")
    await page.until(f"{ANSWERS}.slice(-2).join() === 'One,One'")
    await page.click("Stop")
    await provider_noticed(playground, disconnects + 2)
    await finished(page, "stopped")
    assert complaints(page) == []


async def test_reasoning_is_folded_and_the_result_of_a_tool_is_sent(playground: Playground, page: Page) -> None:
    assert await asked(page, "thinking") == "Look."
    assert await page.value("document.querySelector('.aside').open") is False
    assert await page.value("document.querySelector('.thoughts').textContent") == "Hm, air."
    assert await page.value("document.querySelector('.call summary').textContent") == "Calls weather"
    assert json.loads(await page.value("document.querySelector('.call pre').textContent")) == {"city": "Oslo"}
    await page.value("document.querySelector('.call textarea').focus()")
    await page.type("Sunny")
    await page.press("Enter", modifiers=2)
    await page.until(f"{OUTCOMES}.join() === 'done,done'")
    call, result = playground.messages()[-2:]
    assert (call["tool_calls"][0]["id"], call["tool_calls"][0]["function"]["name"]) == ("c1", "weather")
    assert result == {"role": "tool", "tool_call_id": "c1", "content": "Sunny"}
    assert await page.value(ANSWER) == TEXT
    assert await page.value("document.querySelector('.call').open") is False


async def test_the_same_question_can_be_asked_again(playground: Playground, page: Page) -> None:
    await asked(page, "words first")
    await asked(page, "words second")
    before = len(playground.provider.requests)
    await page.value("[...document.querySelectorAll('button')].filter(b => b.textContent === 'Again')[0].click()")
    await page.until(f"{ANSWERS}.length === 1")
    await finished(page)
    assert [turn["content"] for turn in playground.messages()] == ["words first"]
    assert len(playground.provider.requests) == before + 1


async def test_a_question_is_edited_and_sent_again(playground: Playground, page: Page) -> None:
    await asked(page, "words first")
    await asked(page, "words second")
    await page.click("Edit")
    assert "drop what follows" in await page.value("document.querySelector('.edit [type=submit]').textContent")
    await page.press("Escape")
    assert await page.value(QUESTIONS) == ["words first", "words second"]
    await page.value("[...document.querySelectorAll('button')].filter(b => b.textContent === 'Edit')[1].click()")
    await page.press("a", modifiers=2)
    await page.type("words third")
    await page.press("Enter")
    await page.until(f"{QUESTIONS}.join() === 'words first,words third'")
    await finished(page)
    assert [turn["content"] for turn in playground.messages()] == ["words first", TEXT, "words third"]


async def test_parameters_reach_the_provider_and_a_wrong_one_is_said_at_once(
    playground: Playground, page: Page
) -> None:
    await page.click("Parameters")
    typed = {
        "system": "Be brief.", "temperature": "0.25", "stop": "x\ny", "more": '{"top_p": 0.5}',
        "tools": '[{"name": "weather", "parameters": {"type": "object"}}',
    }  # fmt: skip
    for name, text in typed.items():
        await fill(page, f"setting-{name}", text)
    await page.click("Use these")
    await page.until(f"{ALERT}.includes('“Tools” is no JSON')")
    await fill(page, "setting-tools", typed["tools"] + "]")
    await page.click("Use these")
    await page.until("!document.querySelector('dialog')")
    assert await page.value("document.getElementById('parameters').textContent") == "Parameters 5 set"
    await asked(page, "words")
    body = playground.provider.requests[-1].json()
    assert [turn["content"] for turn in body["messages"]] == ["Be brief.", "words"]
    assert (body["temperature"], body["top_p"], body["stop"]) == (0.25, 0.5, ["x", "y"])
    assert body["tools"] == [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]


async def test_what_a_provider_sends_is_text_and_never_markup(page: Page) -> None:
    assert await asked(page, "hostile") == HOSTILE
    assert await page.value("document.querySelectorAll('.text :is(img, b, script, style)').length") == 0
    assert complaints(page) == []


async def test_hostile_names_and_errors_are_text_too(tmp_path: Path) -> None:
    with running_playground(tmp_path) as playground:
        playground.sidecar.create_model(openai(playground.provider.url), name=HOSTILE)
        async with opened(playground, tmp_path) as page:
            await asked(page, "words " + HOSTILE)
            await asked(page, "nasty", "failed")
            assert await page.value("document.querySelectorAll('main :is(img, b, script)').length") == 0
            assert HOSTILE in await page.value(ALERT)
            assert HOSTILE in await page.value("document.querySelector('.model-name').textContent")
            await page.until("document.querySelector('.conversation')")
            assert HOSTILE in await page.value("document.querySelector('.conversation').textContent")
            assert [one for one in complaints(page) if "424" not in one] == []


async def test_a_provider_of_another_api_converses_alike(tmp_path: Path) -> None:
    with running_playground(tmp_path) as playground:
        playground.sidecar.create_model(anthropic(playground.provider.url), name="Claude")
        async with opened(playground, tmp_path) as page:
            assert await asked(page, "claude") == TEXT
            assert playground.provider.requests[-1].path.endswith("/v1/messages")


async def test_a_server_without_openais_api_says_so(tmp_path: Path) -> None:
    off = {"opensearch_ml_stream.extensions.openai_api": "false"}
    with running_playground(tmp_path, **off) as playground:
        playground.sidecar.create_model(openai(playground.provider.url), name="Alpha")
        async with opened(playground, tmp_path) as page:
            await page.until("document.getElementById('model-note').textContent.includes('openai_api is false')")
            assert await page.value("document.getElementById('send').disabled")


async def test_the_command_beside_an_answer_makes_the_same_call(playground: Playground, page: Page) -> None:
    """It is run as it is shown, with a prompt that a careless quotation breaks."""
    await asked(page, 'words it\'s "quoted" $HOME `x` \\n ☃')
    sent = playground.messages()
    await page.value("document.querySelector('.measured').open = true")
    await page.until("document.querySelector('.measured [aria-label=curl]')")
    curl = await page.value("document.querySelector('.measured [aria-label=curl]').textContent")
    shown = await asyncio.to_thread(subprocess.run, ["sh", "-c", curl], capture_output=True, text=True, timeout=60)
    assert shown.returncode == 0 and '"content":"Light"' in shown.stdout, shown
    assert playground.messages() == sent
