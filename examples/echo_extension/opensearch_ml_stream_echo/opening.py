"""What the extension adds to a worker: the route of the echo, and what counts predictions."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.plugin.extension import Contribution, Core
from opensearch_ml_stream.plugin.observation import Observation, Observer
from opensearch_ml_stream.rest_handlers import actions
from opensearch_ml_stream.rest_handlers.base_path import BASE_PATH
from opensearch_ml_stream.rest_handlers.http.body_memory import BodyReservation
from opensearch_ml_stream.rest_handlers.http.requests import json_body, read_body
from opensearch_ml_stream.rest_handlers.http.responses import json_response
from opensearch_ml_stream_echo.extension import EchoSettings

PATH = f"{BASE_PATH}/echo"


class PredictionCounts(Observer):
    """The observer: how many predictions of this worker came how far, those of all models."""

    def __init__(self) -> None:
        self.counts = Counter[str]()

    def admitted(self, prediction: Observation) -> None:
        """Count a prediction whose provider is called."""
        self.counts["admitted"] += 1

    def first_chunk(self, prediction: Observation) -> None:
        """Count a stream that has begun."""
        self.counts["first_chunk"] += 1

    def ended(self, prediction: Observation) -> None:
        """Count a prediction that has ended, well or not."""
        self.counts["ended"] += 1

    def refused(self, prediction: Observation) -> None:
        """Count a prediction that was refused before its provider was called."""
        self.counts["refused"] += 1


@asynccontextmanager
async def open_echo(core: Core) -> AsyncIterator[Contribution]:
    """Contribute the route and the observer; a resource would live in this block."""
    counts = PredictionCounts()

    async def say(request: Request) -> Response:
        """Say what the prompt says, a word at a time if it is to be a stream."""
        await core.gate.admit(request.scope, actions.PREDICT, actions.PREDICT_STREAM)
        with BodyReservation(core.in_flight.bodies) as reservation:
            body = await read_body(request.scope, request.receive, reservation)
            asked = jsontext.load_object(json_body(request.scope, body))
        prompt = asked.get("prompt")
        if not isinstance(prompt, str):
            raise InvalidRequest("prompt must be a string")
        if asked.get("stream") is not True:
            return json_response(request, {"text": prompt})
        return StreamingResponse(_events(prompt.split(), core), media_type="application/x-ndjson")

    async def show(request: Request) -> Response:
        """Show how many predictions came how far in the worker that responds."""
        await core.gate.admit(request.scope, actions.STATS_GET)
        return json_response(request, counts.counts)

    routes = (Route(PATH, say, methods=["POST"]), Route(PATH, show))
    yield Contribution(routes=routes, observers=(counts,))


async def _events(words: list[str], core: Core) -> AsyncIterator[bytes]:
    for position, word in enumerate(words):
        if position:
            await asyncio.sleep(1 / core.settings.of(EchoSettings).words_per_second)
        yield _line({"word": f" {word}" if position else word})
    yield _line({"done": True, "words": len(words)})


def _line(event: Mapping[str, Any]) -> bytes:
    return orjson.dumps(event) + b"\n"
