"""The playground in a browser, over a provider that plays what the prompt names."""

import json
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from integration_tests.support.background_provider import background_provider
from integration_tests.support.browser.chromium import Page, open_page
from integration_tests.support.conditions import eventually_async
from integration_tests.support.fake_provider import (
    LAST_CHUNK,
    SSE_HEAD,
    Act,
    FakeProvider,
    Gate,
    Request,
    Script,
    anthropic_stream,
    chunk,
    json_response,
    openai_delta,
    openai_stream,
    sse_event,
)
from integration_tests.support.sidecars import Sidecar, running_sidecar

WORDS = ["Light", " is", " scattered", " by", " air."]
TEXT = "".join(WORDS)
QUESTION = "Why is the sky blue?"  # of the page itself, which the provider answers as "words"
HOSTILE = "<img src=x onerror=alert(1)><b>bold</b>"
MARKDOWN = """\
## Scattering

It goes with **1/λ⁴**, see [Rayleigh](https://example.org/rayleigh):

1. blue, ~450 nm
2. red, ~650 nm

| colour | nm |
|---|---:|
| blue | 450 |
| red | 650 |

```python
def strength(nm: float) -> float:
    return nm**-4
```

> So the sky is `blue`.
"""
ANSWERS = "[...document.querySelectorAll('.answer .text')].map(e => e.innerText)"
ANSWER = f"({ANSWERS}.at(-1) ?? '')"
OUTCOMES = "[...document.querySelectorAll('.answer')].map(e => e.dataset.outcome ?? 'running')"
QUESTIONS = "[...document.querySelectorAll('.bubble')].map(e => e.textContent)"
CONVERSATIONS = "[...document.querySelectorAll('.conversation')].map(e => e.textContent)"
ALERT = "(document.querySelector('[role=alert]')?.textContent ?? '')"


def _vector(text: str) -> list[float]:
    """A vector of sixteen numbers: the same for all texts but those that speak of another direction."""
    return [(-1 if text == "opposite" else 1) * index / 8 for index in range(16)]


def _delta(**fields: Any) -> bytes:
    return chunk(sse_event({"choices": [{"index": 0, "delta": fields}]}))


def _prompt(message: dict[str, Any]) -> str:
    """The text of a message; of the result of a tool, the script that follows it."""
    if message["role"] == "tool":
        return "words"
    content = message["content"]
    return content if isinstance(content, str) else str(content[-1].get("text", "words"))


@dataclass(slots=True)
class Playground:
    """The sidecar, the provider, and the gate at which the provider's script "gated" waits."""

    sidecar: Sidecar
    provider: FakeProvider
    gates: list[Gate] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"{self.sidecar.url}/_ui/"

    def messages(self) -> Any:
        """The messages of the last request that the provider got."""
        return self.provider.requests[-1].json()["messages"]


@contextmanager
def running_playground(folder: Path, **settings: str) -> Iterator[Playground]:
    """A sidecar without models; `playground.provider` speaks as OpenAI does."""
    gates: list[Gate] = []

    def gated() -> Script:
        gates.append(Gate())
        return [
            SSE_HEAD, chunk(openai_delta("One")), gates[-1], chunk(openai_delta(" two")),
            chunk(b"data: [DONE]\n\n"), LAST_CHUNK,
        ]  # fmt: skip

    def thinking() -> Script:
        call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city"'}}
        rest = {"index": 0, "function": {"arguments": ': "Oslo"}'}}
        pieces = [_delta(reasoning_content="Hm, "), _delta(reasoning_content="air."), _delta(tool_calls=[call])]
        return [
            SSE_HEAD, *pieces, _delta(tool_calls=[rest]), chunk(openai_delta("Look.")),
            chunk(b"data: [DONE]\n\n"), LAST_CHUNK,
        ]  # fmt: skip

    scripts: dict[str, Callable[[], Script]] = {
        "words": lambda: openai_stream(WORDS),
        "slowly": lambda: openai_stream(WORDS * 6, pause=0.05),
        "gated": gated,
        "endless": lambda: [SSE_HEAD, chunk(openai_delta("One")), Act.WAIT],
        "broken": lambda: [SSE_HEAD, chunk(openai_delta("One")), Act.CLOSE],
        "refused": lambda: json_response({"error": {"message": "no such key"}}, 401),
        "thinking": thinking,
        "hostile": lambda: openai_stream([HOSTILE]),
        "nasty": lambda: json_response({"error": {"message": HOSTILE}}, 500),
        "claude": lambda: anthropic_stream(WORDS),
        "markdown": lambda: openai_stream(re.findall(r".{1,7}", MARKDOWN, re.DOTALL)),
    }

    def script(request: Request) -> Script:
        body = request.json()
        if "input" in body:
            return json_response({"data": [{"embedding": _vector(text)} for text in body["input"]]})
        if "messages" not in body:
            return json_response({"echo": body["inputs"]})
        prompt = _prompt(body["messages"][-1])
        return scripts["words" if prompt == QUESTION else prompt.split(" ")[0]]()

    with background_provider(script) as provider, running_sidecar(folder, settings=settings) as sidecar:
        yield Playground(sidecar, provider, gates)


@asynccontextmanager
async def opened(playground: Playground, folder: Path) -> AsyncIterator[Page]:
    """The page, ready to be used; what the browser complains of is in `page.events`."""
    async with open_page(folder / "profile") as page:
        await watch(page)
        await page.go_to(playground.url)
        await ready(page)
        yield page


async def ready(page: Page) -> None:
    """Waits until the page can be used."""
    await page.until("document.documentElement?.dataset.ready === 'yes'")


async def watch(page: Page) -> None:
    """Lets the browser tell of what `complaints` looks at."""
    for domain in ("Page", "Runtime", "Log", "Network"):
        await page.call(f"{domain}.enable")


def complaints(page: Page) -> list[str]:
    """Errors in the console, violations of the policy, and responses with a bad status."""
    found = []
    for event in page.events:
        parameters = event["params"]
        if event["method"] == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            found.append(parameters["entry"]["text"])
        elif event["method"] == "Runtime.exceptionThrown":
            found.append(json.dumps(parameters["exceptionDetails"]))
        elif event["method"] == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
            found.append(json.dumps(parameters["args"]))
        elif event["method"] == "Network.responseReceived" and parameters["response"]["status"] >= 400:
            found.append(f"{parameters['response']['status']} {parameters['response']['url']}")
    return found


async def fill(page: Page, element_id: str, text: str) -> None:
    """Puts the text into a field, or chooses an option by its text, as a user's input does."""
    await page.value(
        f"(() => {{ const field = document.getElementById({json.dumps(element_id)});"
        f"const option = [...(field.options ?? [])].find((one) => one.text === {json.dumps(text)});"
        f"field.value = option ? option.value : {json.dumps(text)};"
        "for (const kind of ['input', 'change']) field.dispatchEvent(new Event(kind, {bubbles: true})); })()"
    )


async def choose(page: Page, model: str, compared: str = "No second model") -> None:
    """Chooses the models; returns when they can be asked."""
    await fill(page, "model", model)
    await fill(page, "compare", compared)
    await page.until("!document.getElementById('send').disabled")


async def send(page: Page, prompt: str) -> None:
    """Sends a message; returns when the thread has it."""
    before = await page.value(f"{QUESTIONS}.length")
    await fill(page, "prompt", prompt)
    await page.click("Send")
    await page.until(f"{QUESTIONS}.length === {before + 1}")


async def finished(page: Page, outcome: str = "done") -> None:
    """Waits until no answer is running any more; the last ones ended so."""
    await page.until(f"{OUTCOMES}.length && !{OUTCOMES}.includes('running')")
    assert await page.value(f"{OUTCOMES}.at(-1)") == outcome


async def asked(page: Page, prompt: str, outcome: str = "done") -> str:
    """Sends a message and waits for its end; the last answer."""
    await send(page, prompt)
    await finished(page, outcome)
    return str(await page.value(ANSWER))


async def provider_noticed(playground: Playground, disconnects: int) -> None:
    """Waits until the provider has seen so many clients disconnect in the middle of a response."""
    await eventually_async(lambda: playground.provider.disconnects == disconnects)
