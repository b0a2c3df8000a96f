"""A sidecar with both ports over a remote model that says the question again, a word at a time.

As MLServer's own text model does, so that the programs written for that one print the same.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from integration_tests.server.grpc_port.grpc_clients import GRPC, grpc_address
from integration_tests.support.background_provider import background_provider
from integration_tests.support.connector_bodies import openai
from integration_tests.support.fake_provider import (
    SSE_HEAD,
    Act,
    FakeProvider,
    Request,
    Script,
    chunk,
    chunked_stream,
    json_response,
    openai_delta,
    sse_event,
)
from integration_tests.support.sidecars import Sidecar, running_sidecar

QUESTION = "What is the capital of France?"
WORDS = ["What", " is", " the", " capital", " of", " France?"]
ENDLESS = "word, for as long as somebody listens"
USAGE = {"prompt_tokens": 7, "completion_tokens": 6, "total_tokens": 13}
DOCUMENTED_PORTS = (8080, 8081)  # of the programs


@dataclass(frozen=True, slots=True)
class Served:
    """The sidecar, its provider, and its ports. `gzip` is whether it compresses responses."""

    sidecar: Sidecar
    provider: FakeProvider
    port: int
    grpc_port: int
    gzip: bool


@contextmanager
def serving(folder: Path, workers: int, gzip: bool, models: Path | None = None) -> Iterator[Served]:
    """Serves the model `text-model` at both ports, and those in the folder `models`."""
    settings = {"opensearch_ml_stream.v2.gzip": str(gzip).lower()}
    arguments = (*GRPC, "--workers", str(workers), *(() if models is None else ("--models", str(models))))
    with (
        background_provider(say_again) as provider,
        running_sidecar(folder, settings=settings, arguments=arguments) as sidecar,
    ):
        sidecar.create_model(openai(provider.url), name="text-model")
        port, grpc_port = (int(url.rpartition(":")[2]) for url in (sidecar.url, grpc_address(sidecar)))
        yield Served(sidecar, provider, port, grpc_port, gzip)


def say_again(request: Request) -> Script:
    """Each word an event of its own; the end comes with the last one, in one write. ENDLESS has none."""
    body = request.json()
    question = body["messages"][-1]["content"]
    if question == ENDLESS:
        return [SSE_HEAD, chunk(openai_delta("word")), Act.WAIT]
    if not body.get("stream"):
        choice = {"index": 0, "message": {"role": "assistant", "content": question}, "finish_reason": "stop"}
        return json_response({"id": "1", "model": "gpt-fake", "choices": [choice], "usage": USAGE})
    first, *others = question.split(" ")
    *events, last = [openai_delta(word) for word in (first, *(f" {word}" for word in others))]
    end = sse_event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    usage = sse_event({"choices": [], "model": "gpt-fake", "usage": USAGE})
    return chunked_stream([*events, last + end + usage + b"data: [DONE]\n\n"], pause=0.005)
