"""Take the screenshots of docs/ in a headless Chromium: PYTHONPATH=. .venv/bin/python scripts/screenshots.py [FOLDER]

A sidecar of its own is started over a scripted provider, so that nobody has to pay for a picture. Look at both pictures
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

from integration_tests.playground.open_playground import ANSWER, Playground, choose, fill, finished, opened, send
from integration_tests.support.background_provider import background_provider
from integration_tests.support.browser.chromium import Page
from integration_tests.support.connector_bodies import openai
from integration_tests.support.fake_provider import LAST_CHUNK, SSE_HEAD, Request, Step, chunk, openai_delta, sse_event
from integration_tests.support.sidecars import running_sidecar

_WIDTH = 1400  # CSS pixels
_MOST_BYTES = 300_000  # of one picture
_PROMPT = "Why is the sky blue?"
_ANSWERS = {
    "gpt-4o-mini": (
        "Sunlight holds every colour. On its way through the air it meets molecules that are far smaller than a "
        "wavelength, and these scatter short waves much more than long ones: blue light, at about 450 nm, more than "
        "four times as strongly as red light, at about 650 nm.\n\n"
        "So blue reaches you from every part of the sky. At sunset the light crosses far more air; most of its blue "
        "has gone elsewhere by then, and orange and red are left.",
        0.02,
    ),
    "llama-3.1-8b": (
        "Because of Rayleigh scattering. The molecules of the air scatter light, and the shorter its wavelength, the "
        "more: the strength goes with the inverse fourth power.\n\n"
        "Violet is scattered even more than blue, but the sun sends less of it, the upper air absorbs a part, and our "
        "eyes are less sensitive to it. What remains looks blue.",
        0.03,
    ),
}


def _script(request: Request) -> list[Step]:
    """The answer of the model that is asked, at the uneven speed of a real one."""
    text, pause = _ANSWERS[request.json()["model"]]
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
            sidecar.create_model(body, name=name)
        yield Playground(sidecar, provider)


async def _save(page: Page, scheme: str, file: Path) -> None:
    """Write a picture of the whole page."""
    await page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    await page.value("document.activeElement.blur()")
    height = await page.value("document.querySelector('main').getBoundingClientRect().bottom + scrollY")
    await page.resize(_WIDTH, round(height))
    await page.value("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
    picture = base64.b64decode((await page.call("Page.captureScreenshot", format="png"))["data"])
    assert len(picture) < _MOST_BYTES, f"{file}: {len(picture)} bytes"
    await asyncio.to_thread(file.write_bytes, picture)


async def _take(folder: Path, working: Path) -> None:
    with _running(working) as playground:
        async with opened(playground, working) as page:
            await page.resize(_WIDTH, 900)
            await choose(page, "GPT-4o mini", "Llama on my machine")
            await send(page, _PROMPT)
            await finished(page, "Done")
            await _save(page, "light", folder / "playground.png")
            await choose(page, "GPT-4o mini")
            await fill(page, "prompt", _PROMPT)
            await page.value("document.querySelectorAll('.code')[1].open = true")
            await page.click("Send")
            await page.until(f"{ANSWER}.includes('So blue')")
            await _save(page, "dark", folder / "playground-dark.png")


def main() -> None:
    """Take both pictures."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "docs")
    with tempfile.TemporaryDirectory() as working:
        asyncio.run(_take(folder, Path(working)))


if __name__ == "__main__":
    main()
