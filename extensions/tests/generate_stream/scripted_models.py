"""InferenceModels of which only streams are asked, from the script of their one provider."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.extensions.v2.http.use_cases import Inference, NextInference, UnreadRequest
from opensearch_ml_stream.extensions.v2.protocol.messages import InferenceRequest, InferenceResponse, ResponseShape
from opensearch_ml_stream.rest_handlers.callers import Caller
from opensearch_ml_stream.rest_handlers.routes.predict_stream import ProviderStream
from tests.scripted_predictions import ScriptedPredictions


class ScriptedModels:
    """Notes what is prepared, and streams the predictions; `error` is raised in place of preparing."""

    def __init__(self, predictions: ScriptedPredictions, error: MLStreamError | None = None) -> None:
        self.prepared: list[tuple[Caller, str, str | None, InferenceRequest]] = []
        self._predictions = predictions
        self._error = error

    async def prepare(self, caller: Caller, name: str, version: str | None, request: UnreadRequest) -> Inference:
        self.prepared.append((caller, name, version, request.read()))
        if self._error is not None:
            raise self._error
        return Inference(caller, "m1", {}, ResponseShape(name, version, ""))

    def stream(
        self, inference: Inference, further: NextInference | None = None
    ) -> AbstractAsyncContextManager[ProviderStream]:
        return self._predictions.stream(inference.caller, inference.model_id, inference.parameters)

    async def infer(self, inference: Inference) -> InferenceResponse:
        raise NotImplementedError

    async def metadata(self, caller: Caller, name: str, version: str | None) -> Mapping[str, Any]:
        raise NotImplementedError

    async def check_ready(self, caller: Caller, name: str, version: str | None) -> None:
        raise NotImplementedError

    async def index(self, caller: Caller, *, ready: bool) -> Sequence[Mapping[str, Any]]:
        raise NotImplementedError

    async def load(self, caller: Caller, name: str) -> None:
        raise NotImplementedError

    async def unload(self, caller: Caller, name: str) -> None:
        raise NotImplementedError
