"""The playground in a browser, over a provider that plays what the prompt names."""

import json
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
    chunk,
    json_response,
    openai_delta,
    openai_stream,
    sse_event,
)
from integration_tests.support.sidecars import Sidecar, running_sidecar

WORDS = ["Light", " is", " scattered", " by", " air."]
TEXT = "".join(WORDS)
HOSTILE = "<img src=x onerror=alert(1)><b>bold</b>"
ANSWER = "document.querySelector('[role=region][aria-label=Answer]').textContent"
SECOND_ANSWER = "document.querySelector('[role=region][aria-label=\"Second answer\"]').textContent"
ALERT = "(document.querySelector('[role=alert]')?.textContent ?? '')"
STATES = "[...document.querySelectorAll('.state')].map(e => e.textContent).join()"


def _delta(**fields: Any) -> bytes:
    return chunk(sse_event({"choices": [{"index": 0, "delta": fields}]}))


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
    }

    def script(request: Request) -> Script:
        body = request.json()
        if "input" in body:
            return json_response({"data": [{"embedding": [index / 8 for index in range(16)]}]})
        if "messages" not in body:
            return json_response({"echo": body["inputs"]})
        prompt = str(body["messages"][-1]["content"])
        return scripts[prompt.split(" ")[0]]()

    with background_provider(script) as provider, running_sidecar(folder, settings=settings) as sidecar:
        yield Playground(sidecar, provider, gates)


@asynccontextmanager
async def opened(playground: Playground, folder: Path) -> AsyncIterator[Page]:
    """The page, ready to be used; what the browser complains of is in `page.events`."""
    async with open_page(folder / "profile") as page:
        await watch(page)
        await page.go_to(playground.url)
        await page.until("document.querySelector('.answer') || !document.getElementById('no-models').hidden")
        yield page


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


async def choose(page: Page, model: str, compared: str = "") -> None:
    """Chooses the models; returns when the page shows their panels."""
    await fill(page, "model", model)
    await fill(page, "compare", compared or "None")
    names = ",".join([model, compared] if compared else [model])
    await page.until(f"[...document.querySelectorAll('.model-name')].map(e => e.textContent).join() === '{names}'")


async def send(page: Page, prompt: str) -> None:
    await fill(page, "prompt", prompt)
    await page.click("Send")


async def finished(page: Page, state: str) -> None:
    """Waits until every answer is in that state."""
    await page.until(f"[...document.querySelectorAll('.state')].every(e => e.textContent === {json.dumps(state)})")


async def provider_noticed(playground: Playground, disconnects: int) -> None:
    """Waits until the provider has seen so many clients disconnect in the middle of a response."""
    await eventually_async(lambda: playground.provider.disconnects == disconnects)
