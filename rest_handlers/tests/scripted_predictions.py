"""Predictions as the routes need them, from scripts instead of providers."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import orjson

from opensearch_ml_stream.connectors.chunks import Chunk, Chunks, Ending
from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.rest_handlers.application import rest_application
from opensearch_ml_stream.rest_handlers.callers import Caller
from opensearch_ml_stream.rest_handlers.http.host_and_origin import BrowserPolicy
from opensearch_ml_stream.rest_handlers.http.response_lifecycle import InFlightResponses, ResponseLimits
from opensearch_ml_stream.rest_handlers.routes.predict_stream import PredictStream, RelayIfElsewhere
from tests.asgi_exchange import JSON_HEADERS, Exchange
from tests.recording_gate import RecordingGate

LIMITS = ResponseLimits(max_body_size=1000, first_event_wait=5.0, heartbeat=15.0)
WHOLE = {"inference_results": [{"output": [{"name": "response", "dataAsMap": {"response": "all"}}]}]}
JOB = {"task_id": "t1", "status": "CREATED"}

STREAM_PATH = "/_plugins/_ml/models/m1/_predict/stream"
QUESTION = {"parameters": {"inputs": "Why?"}}
BODY = json.dumps(QUESTION).encode()
NO_EXTRA: Mapping[str, Any] = {}


@dataclass(frozen=True)
class Last:
    """The chunks that came with the outcome."""

    chunks: Chunks
    outcome: Ending | MLStreamError


@dataclass(frozen=True)
class Raised:
    """An exception that leaves the service."""

    error: Exception


Pause = float | asyncio.Event | Raised
"""Seconds of silence, an event to wait for, or an exception instead."""

Step = Chunks | Last | Ending | MLStreamError | Pause
"""Chunks, an outcome with or without them, or a pause."""


def text(*texts: str) -> list[Chunk]:
    return [Chunk(one) for one in texts]


class ScriptedStream:
    """A ProviderStream. `writes` are the return values of `write` in `pump`."""

    def __init__(self, steps: tuple[Step, ...], extra: Mapping[str, Any] = NO_EXTRA) -> None:
        self.outcome: Ending | MLStreamError | None = None
        self._extra = extra
        self.chunks = 0
        self.writes: list[bool] = []
        self._steps = iter(steps)

    def terminal_fields(self, ending: Ending) -> dict[str, Any]:
        return dict(self._extra)

    async def read(self) -> Chunks:
        for step in self._steps:
            if isinstance(step, Last):
                self.outcome = step.outcome
                return step.chunks
            if isinstance(step, Ending | MLStreamError):
                self.outcome = step
                return []
            if isinstance(step, list | bytes | tuple):
                return step
            await _play(step)
        raise AssertionError("the script has no outcome")

    async def pump(self, encode: Callable[[Chunks], bytes], write: Callable[[bytes], bool]) -> Chunks:
        while True:
            chunks = await self.read()
            if self.outcome is not None:
                return chunks
            self.writes.append(write(encode(chunks)))
            if not self.writes[-1]:
                return []


class ScriptedPredictions:
    """Predictions and WholePredictions; `opening` comes before the provider's first step, `closing` after its last."""

    def __init__(
        self,
        *steps: Step,
        opening: tuple[Pause, ...] = (),
        closing: tuple[Pause, ...] = (),
        extra: Mapping[str, Any] = NO_EXTRA,
    ) -> None:
        self.provider = ScriptedStream(steps, extra)
        self.requests: list[tuple[object, ...]] = []
        self.closed = asyncio.Event()  # set when the provider call has been wound up, however it ended
        self._opening = opening
        self._closing = closing

    @asynccontextmanager
    async def stream(
        self, caller: Caller, model_id: str, parameters: Mapping[str, str], action_type: str | None = None
    ) -> AsyncIterator[ScriptedStream]:
        self.requests.append(("stream", model_id, dict(parameters), *([action_type] if action_type else [])))
        try:
            await _play(*self._opening)
            yield self.provider
        finally:
            await _play(*self._closing)
            self.closed.set()

    async def predict(
        self, caller: Caller, model_id: str, body: bytes, algorithm: str | None = None
    ) -> Mapping[str, Any]:
        return await self._whole(WHOLE, "predict", model_id, body, algorithm)

    async def predict_encoded(self, caller: Caller, model_id: str, body: bytes, algorithm: str | None = None) -> bytes:
        return orjson.dumps(await self.predict(caller, model_id, body, algorithm))

    async def batch_predict(self, caller: Caller, model_id: str, body: bytes) -> Mapping[str, Any]:
        return await self._whole(JOB, "batch_predict", model_id, body)

    async def _whole(self, response: Mapping[str, Any], *request: object) -> Mapping[str, Any]:
        self.requests.append(request)
        try:
            await _play(*self._opening)
        finally:
            self.closed.set()
        return response


class Sidecar:
    """The application over scripted predictions."""

    def __init__(
        self,
        predictions: ScriptedPredictions,
        limits: ResponseLimits = LIMITS,
        policy: BrowserPolicy = BrowserPolicy(),  # noqa: B008  # a frozen value
        relay_if_elsewhere: RelayIfElsewhere | None = None,
    ) -> None:
        self.in_flight = InFlightResponses(limits)
        self.gate = RecordingGate()
        router = rest_application([])
        self.application = PredictStream(predictions, self.in_flight, self.gate, router, policy, relay_if_elsewhere)

    async def first_chunk(self, exchange: Exchange) -> None:
        """Wait until the first chunk of this one response in flight was sent."""
        await exchange.until_sent(2)
        assert len(self.in_flight) == 1


def stream_request(path: str = STREAM_PATH) -> Exchange:
    return Exchange("POST", path, BODY, JSON_HEADERS)


async def _play(*pauses: Pause) -> None:
    for pause in pauses:
        if isinstance(pause, Raised):
            raise pause.error
        if isinstance(pause, asyncio.Event):
            await pause.wait()
        else:
            await asyncio.sleep(pause)
