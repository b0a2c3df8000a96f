"""A sidecar of two workers whose `/generate-stream` asks a model over a provider that plays what the prompt names."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from integration_tests.support.background_provider import background_provider
from integration_tests.support.connector_bodies import openai
from integration_tests.support.fake_provider import (
    SSE_HEAD,
    Act,
    FakeProvider,
    Request,
    Script,
    Step,
    chunk,
    json_response,
    openai_delta,
    openai_stream,
)
from integration_tests.support.sidecars import Sidecar, running_sidecar

SETTING = "opensearch_ml_stream.generate_stream_model"
PATH = "/generate-stream"
# Who waits for a place in flight waits for as long as a test does.
_SETTINGS = {SETTING: "tutorial", "opensearch_ml_stream.stream_queue_seconds": "60"}
WORDS = ["What", " is", " the", " capital", " of", " France?"]
BEGUN: list[Step] = [SSE_HEAD, chunk(openai_delta("What")), 0.05, chunk(openai_delta(" is"))]
SCRIPTS: dict[str, Callable[[], Script]] = {
    "words": lambda: openai_stream(WORDS, pause=0.02),
    "endless": lambda: [*BEGUN, Act.WAIT],
    "broken": lambda: [*BEGUN, Act.CLOSE],
    "refused": lambda: json_response({"error": {"message": "no such key"}}, 401),
}


@dataclass(frozen=True, slots=True)
class Tutorial:
    """The sidecar and the provider, which notes what it was asked."""

    sidecar: Sidecar
    provider: FakeProvider

    @property
    def url(self) -> str:
        return self.sidecar.url + PATH

    def calls(self, script: str, mark: str = "") -> int:
        """How often the provider was asked for a script, with that mark behind its name."""
        return sum(_prompt(request) == f"{script} {mark}".strip() for request in self.provider.requests)


@contextmanager
def running_tutorial(folder: Path) -> Iterator[Tutorial]:
    with (
        background_provider(lambda request: SCRIPTS[_prompt(request).split(" ")[0]]()) as provider,
        running_sidecar(folder, settings=_SETTINGS, arguments=("--workers", "2")) as sidecar,
    ):
        sidecar.create_model(openai(provider.url), name="tutorial")
        yield Tutorial(sidecar, provider)


def _prompt(request: Request) -> str:
    return str(request.json()["messages"][-1]["content"])
