"""The V2 protocol over scripted inferences."""

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from opensearch_ml_stream.connectors.errors import MLStreamError, Unavailable
from opensearch_ml_stream.extensions.v2.extension import V2_PATH
from opensearch_ml_stream.extensions.v2.http.application import OpenInference
from opensearch_ml_stream.extensions.v2.http.inference_endpoints import InferenceEndpoints
from opensearch_ml_stream.extensions.v2.http.model_endpoints import ModelEndpoints, Server
from opensearch_ml_stream.extensions.v2.http.use_cases import Inference, NextInference, UnreadRequest
from opensearch_ml_stream.extensions.v2.protocol.messages import (
    InferenceRequest,
    InferenceResponse,
    ResponseShape,
    Tensor,
)
from opensearch_ml_stream.rest_handlers.application import rest_application
from opensearch_ml_stream.rest_handlers.base_path import Paths
from opensearch_ml_stream.rest_handlers.callers import Caller
from opensearch_ml_stream.rest_handlers.http.asgi_extensions import CHUNK_WRITER
from opensearch_ml_stream.rest_handlers.http.host_and_origin import BrowserPolicy
from opensearch_ml_stream.rest_handlers.http.response_lifecycle import InFlightResponses, ResponseLimits
from opensearch_ml_stream.rest_handlers.http.responses import plain_error_body
from opensearch_ml_stream.rest_handlers.routes.predict_stream import PredictStream
from tests.asgi_exchange import JSON_HEADERS, Exchange
from tests.recording_gate import RecordingGate
from tests.scripted_predictions import LIMITS, ScriptedPredictions, ScriptedStream

TENSORS: dict[str, Any] = {
    "id": "r1",
    "inputs": [{"name": "prompt", "shape": [1], "datatype": "BYTES", "data": ["Why?"]}],
}
BODY = json.dumps(TENSORS).encode()
METADATA = {"name": "m1", "versions": ["1"], "platform": "remote", "inputs": [], "outputs": []}
INDEX = [{"name": "m1", "version": "1", "state": "READY", "reason": ""}]
STREAM_PATH = "/v2/models/m1/infer_stream"


class ScriptedInferences:
    """InferenceModels. `error` is of every use case; a whole inference gives `text` after the opening of the script."""

    def __init__(
        self, predictions: ScriptedPredictions | None = None, error: MLStreamError | None = None, text: str = "Because"
    ) -> None:
        self.predictions = predictions or ScriptedPredictions()
        self.calls: list[tuple[Any, ...]] = []
        self.requests: list[InferenceRequest] = []
        self.text = text
        self._error = error

    async def prepare(self, caller: Caller, name: str, version: str | None, request: UnreadRequest) -> Inference:
        read = request.read()
        self.requests.append(read)
        self._called("prepare", caller, name, version)
        return Inference(caller, "id-1", {"inputs": "Why?"}, ResponseShape(name, version, read.id))

    def stream(
        self, inference: Inference, further: NextInference | None = None
    ) -> AbstractAsyncContextManager[ScriptedStream]:
        return self.predictions.stream(inference.caller, inference.model_id, inference.parameters)

    async def infer(self, inference: Inference) -> InferenceResponse:
        await self.predictions.predict(inference.caller, inference.model_id, b"")
        output = Tensor("output", "BYTES", [1, 1], [self.text], {"content_type": "str"})
        return InferenceResponse(inference.shape, [output], {"finish_reason": "stop"})

    async def metadata(self, caller: Caller, name: str, version: str | None) -> Mapping[str, Any]:
        self._called("metadata", caller, name, version)
        return METADATA

    async def check_ready(self, caller: Caller, name: str, version: str | None) -> None:
        self._called("check_ready", caller, name, version)

    async def index(self, caller: Caller, *, ready: bool) -> Sequence[Mapping[str, Any]]:
        self._called("index", caller, ready)
        return INDEX

    async def load(self, caller: Caller, name: str) -> None:
        self._called("load", caller, name)

    async def unload(self, caller: Caller, name: str) -> None:
        self._called("unload", caller, name)

    def _called(self, *call: Any) -> None:
        self.calls.append(call)
        if self._error is not None:
            raise self._error


class V2Sidecar:
    """The application over scripted inferences; the store responds unless `is_store_away`."""

    def __init__(
        self,
        inferences: ScriptedInferences,
        limits: ResponseLimits = LIMITS,
        gate: RecordingGate | None = None,
        gzip: bool = True,
    ) -> None:
        self.in_flight = InFlightResponses(limits)
        self.gate = gate or RecordingGate()
        self.is_store_away = False
        server = Server("1.2.3", self._ping)
        endpoints = InferenceEndpoints(inferences, self.in_flight, self.gate, gzip)
        of_models = ModelEndpoints(inferences, server, self.gate, self.in_flight.bodies, gzip)
        paths = Paths((V2_PATH,), {V2_PATH: plain_error_body})
        v2 = OpenInference(endpoints, of_models, rest_application([]))
        predictions = inferences.predictions
        self.application = PredictStream(predictions, self.in_flight, self.gate, v2, BrowserPolicy(), paths=paths)

    async def _ping(self) -> None:
        if self.is_store_away:
            raise Unavailable("host 10.1.2.3 does not respond")


class FastWriter:
    """A ChunkWriter of a server that is never full; it notes what it is given."""

    last_write = 0.0

    def __init__(self) -> None:
        self.written: list[bytes] = []

    def write_chunk(self, data: bytes) -> bool:
        self.written.append(data)
        return True

    async def drain(self) -> None:
        """Return: nothing is held."""


def stream_request(writer: FastWriter | None = None, **headers: str) -> Exchange:
    extensions = None if writer is None else {CHUNK_WRITER: writer}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Exchange("POST", STREAM_PATH, BODY, {**JSON_HEADERS, **named}, extensions)
