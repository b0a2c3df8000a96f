"""Take the screenshots of docs/ in a headless Chromium: PYTHONPATH=. .venv/bin/python scripts/screenshots.py [FOLDER]

A sidecar of its own is started over a scripted provider, so that nobody has to pay for a picture. Look at the pictures
before you commit them.
"""

import asyncio
import base64
import random
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from integration_tests.playground.models_in_page import choose_code, press, show_models
from integration_tests.playground.open_playground import ANSWER, Playground, asked, choose, finished, opened, send
from integration_tests.support.background_provider import background_provider
from integration_tests.support.browser.chromium import Page
from integration_tests.support.connector_bodies import openai
from integration_tests.support.fake_provider import LAST_CHUNK, SSE_HEAD, Request, Step, chunk, openai_delta, sse_event
from integration_tests.support.sidecars import running_sidecar

_WIDTH = 1400  # CSS pixels
_MOST_BYTES = 300_000  # of one picture
_PROMPT = "Why is the sky blue?"
_CODE_PROMPT = "How much more is blue light scattered than red? Show me in Python."
_ANSWERS = {
    ("gpt-4o-mini", _PROMPT): (
        "Sunlight holds every colour. On its way through the air it meets molecules that are far smaller than a "
        "wavelength, and these scatter **short waves much more than long ones**:\n\n"
        "| light | wavelength | scattered |\n|---|---|---|\n| blue | 450 nm | 4.4 times |\n| red | 650 nm | 1 |\n\n"
        "So blue reaches you from every part of the sky. At sunset the light crosses far more air; most of its blue "
        "has gone elsewhere by then, and orange and red are left.",
        0.02,
    ),
    ("llama-3.1-8b", _PROMPT): (
        "Because of *Rayleigh scattering*:\n\n"
        "1. The molecules of the air scatter light.\n"
        "2. The shorter its wavelength, the more: the strength goes with `1/λ⁴`.\n"
        "3. Violet is scattered even more than blue, but the sun sends less of it, and our eyes are less sensitive "
        "to it.\n\nWhat remains looks blue.",
        0.03,
    ),
    ("gpt-4o-mini", _CODE_PROMPT): (
        "Rayleigh scattering goes with the inverse fourth power of the wavelength:\n\n"
        '```python\ndef scattered(nm: float) -> float:\n    """Strength relative to red light."""\n'
        '    return (650 / nm) ** 4\n\n\nfor colour, nm in {"blue": 450, "green": 530, "red": 650}.items():\n'
        '    print(f"{colour:6} {scattered(nm):.1f}")\n```\n\n'
        "It prints 4.4 for blue, 2.3 for green and 1.0 for red. Light of 650 nm is scattered least, which is why "
        "**sunsets are red**: on the long way through the air the blue has gone.",
        0.02,
    ),
}

_LIMITS = {"limits": {"max_streams": 50}, "budgets": [{"tokens": 5_000_000, "window": "1d"}]}


def _script(request: Request) -> list[Step]:
    """The answer of the model that is asked, at the uneven speed of a real one."""
    body = request.json()
    text, pause = _ANSWERS[body["model"], body["messages"][-1]["content"]]
    even = random.Random(text)
    script: list[Step] = [SSE_HEAD, 0.3]
    words = re.findall(r"\s*\S+", text)
    for number, word in enumerate(words):
        script += [pause * even.uniform(0.4, 1.6) * (1 + (number // 14) % 3), chunk(openai_delta(word))]
    usage = {"prompt_tokens": 14, "completion_tokens": round(1.25 * len(words))}
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": usage}
    return [*script, chunk(sse_event(end)), chunk(b"data: [DONE]\n\n"), LAST_CHUNK]


@contextmanager
def _running(folder: Path) -> Iterator[Playground]:
    with background_provider(_script) as provider, running_sidecar(folder) as sidecar:
        for name, model in (("GPT-4o mini", "gpt-4o-mini"), ("Llama on my machine", "llama-3.1-8b")):
            body = openai(provider.url)
            body["parameters"]["model"] = model
            sidecar.create_model(body, name=name, _sidecar=_LIMITS)
        yield Playground(sidecar, provider)


async def _save(page: Page, file: Path, scheme: str = "light", width: int = _WIDTH, height: int = 900) -> None:
    """Write a picture of what a window of that size shows."""
    await page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    await page.resize(width, height)
    await page.value("document.activeElement.blur()")
    await page.value("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
    picture = base64.b64decode((await page.call("Page.captureScreenshot", format="png"))["data"])
    assert len(picture) < _MOST_BYTES, f"{file}: {len(picture)} bytes"
    await asyncio.to_thread(file.write_bytes, picture)


async def take_pictures(folder: Path, working: Path) -> None:
    """Write the pictures of the documentation: two models on a desk, one answering in the dark, a phone, the models."""
    with _running(working) as playground:
        async with opened(playground, working) as page:
            await page.resize(_WIDTH, 900)
            await choose(page, "GPT-4o mini", "Llama on my machine")
            await asked(page, _PROMPT)
            await _save(page, folder / "playground.png")
            await page.click("New conversation")
            await choose(page, "GPT-4o mini")
            await send(page, _CODE_PROMPT)
            await page.until(f"{ANSWER}.includes('650 nm')")
            await _save(page, folder / "playground-dark.png", "dark")
            await finished(page)
            await _save(page, folder / "playground-phone.png", width=390, height=844)
            await page.resize(_WIDTH, 900)
            await show_models(page, "GPT-4o mini", "Llama on my machine")
            await press(page, "GPT-4o mini", "Test")
            await page.until("document.querySelector('.works')")
            await choose_code(page, "GPT-4o mini", "OpenAI", "Python")
            await _save(page, folder / "playground-models.png")


def main() -> None:
    """Take the pictures."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "docs")
    with tempfile.TemporaryDirectory() as working:
        asyncio.run(take_pictures(folder, Path(working)))


if __name__ == "__main__":
    main()
