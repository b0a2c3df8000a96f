"""Predictions in the playground, in a real browser: streams, errors, two models at once, code for the same call."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest
from integration_tests.playground.open_playground import (
    ALERT,
    ANSWER,
    HOSTILE,
    SECOND_ANSWER,
    STATES,
    TEXT,
    Playground,
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
from integration_tests.support.conditions import eventually_async
from integration_tests.support.connector_bodies import openai

pytestmark = NEEDS_CHROMIUM


async def test_the_text_is_seen_growing_and_measured(playground: Playground, page: Page) -> None:
    await send(page, "gated")
    await page.until(f"{ANSWER} === 'One'")
    assert await page.value(STATES) == "Answering"
    assert await page.value("document.querySelector('[aria-label=Answer]').getAttribute('aria-busy')") == "true"
    playground.gates[-1].open()
    await page.until(f"{ANSWER} === 'One two'")
    await finished(page, "Done")
    await send(page, "slowly")
    await finished(page, "Done")
    assert await page.value(ANSWER) == TEXT * 6
    figures = await page.value("document.getElementById('measured').innerText")
    assert "First token (TTFT)" in figures and "Output tokens\n30" in figures and "Input tokens\n5" in figures
    assert await page.value("document.querySelectorAll('.plot .line').length") == 1
    assert "on average" in await page.value("document.querySelector('.plot').getAttribute('aria-label')")
    assert await page.value("document.querySelector('[role=alert]')") is None
    assert complaints(page) == []


async def test_stop_ends_the_call_of_the_provider(playground: Playground, page: Page) -> None:
    before = playground.provider.disconnects
    await send(page, "endless")
    await page.until(f"{ANSWER} === 'One'")
    await page.until("document.getElementById('live').innerText.includes('Streams in flight\\n1')")
    await page.click("Stop")
    await provider_noticed(playground, before + 1)
    await finished(page, "Stopped")
    assert await page.value(ANSWER) == "One"
    assert await page.value("document.querySelector('[role=alert]')") is None
    await page.until("document.getElementById('live').innerText.includes('Streams in flight\\n0')")
    assert complaints(page) == []


@pytest.mark.parametrize(("prompt", "reason", "text"), [("refused", "no such key", ""), ("broken", "", "One")])
async def test_an_error_is_an_alert_beside_the_text_before_it(page: Page, prompt: str, reason: str, text: str) -> None:
    assert await page.value("document.querySelector('[role=alert]')") is None
    await send(page, prompt)
    await finished(page, "Failed")
    assert reason in await page.value(ALERT)
    assert await page.value(ANSWER) == text
    assert await page.value("document.querySelector('[role=alert]').checkVisibility()")
    await send(page, "words")
    await finished(page, "Done")
    assert await page.value("document.querySelector('[role=alert]')") is None


async def test_a_sidecar_that_ends_is_an_alert_too(tmp_path: Path) -> None:
    with running_playground(tmp_path) as playground:
        playground.sidecar.create_model(openai(playground.provider.url), name="Alpha")
        async with opened(playground, tmp_path) as page:
            await asyncio.to_thread(playground.sidecar.stop)
            await send(page, "words")
            await page.until(f"{ALERT}.includes('The sidecar does not respond')")


async def test_two_models_respond_to_one_prompt_side_by_side(playground: Playground, page: Page) -> None:
    await choose(page, "Alpha", "Beta")
    before = len(playground.provider.requests)
    await send(page, "words")
    await finished(page, "Done")
    assert [await page.value(ANSWER), await page.value(SECOND_ANSWER)] == [TEXT, TEXT]
    assert len(playground.provider.requests) == before + 2
    disconnects = playground.provider.disconnects
    await send(page, "endless")
    await page.until(f"{ANSWER} + {SECOND_ANSWER} === 'OneOne'")
    await page.click("Stop")
    await provider_noticed(playground, disconnects + 2)
    await finished(page, "Stopped")
    assert complaints(page) == []


async def test_reasoning_and_tool_calls_stand_apart_and_raw_objects_beside(page: Page) -> None:
    await send(page, "thinking")
    await page.until(f"{STATES}.startsWith('Done')")
    assert await page.value(ANSWER) == "Look."
    assert await page.value("document.querySelector('.aside .text').textContent") == "Hm, air."
    assert await page.value("document.querySelector('.call').innerText") == 'Tool call weather\n{"city": "Oslo"}'
    await page.value("document.querySelector('.code').open = true")
    await page.until("document.querySelector('.code pre').textContent.includes('is_last')")
    raw = (await page.value("document.querySelector('.code pre').textContent")).splitlines()
    assert all("inference_results" in json.loads(line) for line in raw)


async def test_what_a_provider_sends_is_text_and_never_markup(page: Page) -> None:
    await send(page, "hostile")
    await finished(page, "Done")
    assert await page.value(ANSWER) == HOSTILE
    assert await page.value("document.querySelectorAll('.text *').length") == 0
    assert complaints(page) == []


async def test_system_turns_and_parameters_reach_the_provider(playground: Playground, page: Page) -> None:
    await fill(page, "system", "Be brief.")
    await page.click("Add a turn")
    await page.click("Add a turn")
    await page.value("[...document.querySelectorAll('.turns textarea')].forEach((e, i) => e.value = ['hi', 'ho'][i])")
    await fill(page, "parameter-temperature", "0.25")
    await fill(page, "parameter-stop", '["x"]')
    await send(page, "words")
    await finished(page, "Done")
    said = {"system": "Be brief.", "user": "words", "assistant": "ho"}
    assert [(turn["role"], turn["content"]) for turn in playground.messages()] == [
        ("system", said["system"]), ("user", "hi"), ("assistant", said["assistant"]), ("user", said["user"]),
    ]  # fmt: skip
    body = playground.provider.requests[-1].json()
    assert (body["temperature"], body["stop"]) == (0.25, ["x"])


BLOCKS = '[{"role":"user","content":[{"text":"${parameters.inputs}"}]}]'
PARTS = '[{"role":"user","parts":[{"text":"${parameters.inputs}"}]}]'
CHATS = {
    "strings": (
        {"messages": '[{"role":"user","content":"${parameters.inputs}"}]'},
        {
            "messages": [
                {"role": "system", "content": "S"},
                {"role": "user", "content": "u"},
                {"role": "assistant", "content": "a"},
                {"role": "user", "content": "$& p"},
            ]
        },
    ),
    "a system of its own, blocks": (
        {"messages": BLOCKS, "system": "null"},
        {
            "messages": [
                {"role": "user", "content": [{"text": "u"}]},
                {"role": "assistant", "content": [{"text": "a"}]},
                {"role": "user", "content": [{"text": "$& p"}]},
            ],
            "system": "S",
        },
    ),
    "parts": (
        {"contents": PARTS, "system": "null"},
        {
            "contents": [
                {"role": "user", "parts": [{"text": "u"}]},
                {"role": "model", "parts": [{"text": "a"}]},
                {"role": "user", "parts": [{"text": "$& p"}]},
            ],
            "system": "S",
        },
    ),
    "one text, that a connector puts into a prompt": ({"prompt": "[INST] ${parameters.inputs}"}, {"inputs": "$& p"}),
}


@pytest.mark.parametrize(("defaults", "expected"), CHATS.values(), ids=CHATS)
async def test_a_turn_has_the_shape_that_the_connector_gives_it(
    page: Page, defaults: dict[str, str], expected: dict[str, object]
) -> None:
    parameters = [{"name": name, "default": default} for name, default in defaults.items()]
    kind = "prompt" if "prompt" in defaults else "chat"
    description = {"kind": kind, "turn": next(iter(defaults)) if kind == "chat" else "inputs", "parameters": parameters}
    turns = [{"role": "user", "text": "u"}, {"role": "assistant", "text": "a"}]
    typed = {"prompt": "$& p", "system": "S", "turns": turns, "parameters": {}}
    request = await page.value(
        "import(new URL('static/prediction.js', location.href)).then(({ requestFor }) =>"
        f"requestFor({{id: 'm', can_stream: true}}, {json.dumps(description)}, {json.dumps(typed)}))"
    )
    assert request == {
        "path": "../_plugins/_ml/models/m/_predict/stream", "body": {"parameters": expected}, "isStream": True,
    }  # fmt: skip


async def test_a_conversation_goes_on_with_the_answer(playground: Playground, page: Page) -> None:
    await send(page, "words first")
    await finished(page, "Done")
    await page.click("Continue the conversation")
    await send(page, "words second")
    await eventually_async(lambda: playground.messages()[-1]["content"] == "words second")
    assert [turn["content"] for turn in playground.messages()] == ["words first", TEXT, "words second"]


async def test_the_code_beside_an_answer_makes_the_same_call(playground: Playground, page: Page) -> None:
    """Both are run as they are shown, with a prompt that a careless quotation breaks."""
    await send(page, 'words it\'s "quoted" $HOME `x` \\n ☃')
    await finished(page, "Done")
    sent = playground.messages()
    code = await page.value("[...document.querySelectorAll('.code pre')].map(e => e.textContent)")
    shown = await asyncio.to_thread(subprocess.run, ["sh", "-c", code[1]], capture_output=True, text=True, timeout=60)
    assert shown.returncode == 0 and '"content":"Light"' in shown.stdout, shown
    assert playground.messages() == sent
    python = [sys.executable, "-c", code[2]]
    shown = await asyncio.to_thread(subprocess.run, python, capture_output=True, text=True, timeout=60)
    assert (shown.returncode, shown.stdout) == (0, TEXT), shown
    assert playground.messages() == sent
