"""Runtimes as a connector protocol: how models that run here are called, loaded and described to V2."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

from opensearch_ml_stream.connectors.documents import PREDICT, Connector, read_model
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.predict.inputs import PredictInput
from opensearch_ml_stream.connectors.predict.model_inputs import ModelInputs
from opensearch_ml_stream.connectors.predict.pre_process import Step
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.connectors.stream_spec import Streaming
from opensearch_ml_stream.extensions.runtimes.protocol.runtime_request import (
    CONVERSATION_INPUTS,
    RuntimeAction,
    inference_parameters,
    predict_steps,
    readable_body,
)
from opensearch_ml_stream.extensions.runtimes.protocol.runtime_stream import RUNTIME_STREAM
from opensearch_ml_stream.extensions.runtimes.protocol.runtime_urls import (
    find_engine_model,
    find_runtime,
    is_runtime_id,
    runtime_model_id,
)
from opensearch_ml_stream.extensions.runtimes.service.control import RuntimeControl
from opensearch_ml_stream.extensions.runtimes.service.engine_calls import EngineCalls
from opensearch_ml_stream.extensions.runtimes.service.runtime_calls import RuntimeCalls
from opensearch_ml_stream.extensions.runtimes.service.runtime_models import RuntimeModels
from opensearch_ml_stream.extensions.runtimes.service.status import ModelStatus
from opensearch_ml_stream.extensions.v2.face import InferenceRequest, KnowsReadiness, SpeaksV2, V2Repository
from opensearch_ml_stream.plugin.connector_protocol import NextRequest
from opensearch_ml_stream.plugin.upstream import UpstreamResponse

_STATES = {"READY": "READY", "LOADING": "LOADING"}  # MLServer's; any other is UNAVAILABLE


@dataclass(frozen=True, slots=True)
class RuntimeProtocol(V2Repository):
    """Fits `plugin.connector_protocol.ConnectorProtocol`: the models with an id and a URL of runtimes."""

    calls: RuntimeCalls
    engine_calls: EngineCalls
    control: RuntimeControl

    def find(self, model_id: str, connector: Connector) -> "Runtime | Engine | None":
        """Return the runtime of a model; None for any other model, whatever its URL."""
        models = self.calls.models
        if (name := find_runtime(model_id, connector)) is not None:
            return Runtime(name, connector, models, self.control, self.calls)
        if (name := find_engine_model(model_id, connector)) is not None:
            return Engine(name, connector, models, self.control, self.engine_calls)
        return None

    def model_id(self, name: str, version: str) -> str:
        """Return the id that the keeper gives a model with a version in its settings."""
        return runtime_model_id(name, version)

    def is_unloaded(self, model_id: str) -> bool | None:
        """Return whether the keeper has unloaded a model; None for a model without processes here."""
        if not is_runtime_id(model_id):
            return None
        models = self.calls.models.current().values()
        found = next((status for status in models if status.model_id == model_id), None)
        return None if found is None or found.is_provided else found.state == "UNLOADED"

    async def find_new(self, name: str) -> None:
        """Load new folders with models of that name, if any."""
        await self.control.find(name)

    def index_entry(self, model_id: str, source: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return state, reason and version from the status file."""
        connector = read_model(source).connector if is_runtime_id(model_id) else None
        runtime = None if connector is None else self.find(model_id, connector)
        if runtime is None:
            return {}
        status = runtime.status()
        if status is None:
            return {"state": "UNAVAILABLE", "reason": "not on this server"}
        version = {} if status.version is None else {"version": status.version}
        state = "READY" if status.callable_sockets else _STATES.get(status.state, "UNAVAILABLE")
        return {**version, "state": state, "reason": status.reason}


@dataclass(frozen=True, slots=True)
class _Kept(KnowsReadiness):
    """A model that the keeper loads and unloads, and its last status."""

    model: str
    connector: Connector
    models: RuntimeModels
    control: RuntimeControl

    async def load(self) -> None:
        """Load the model as its files are now; NotFound if it is not here, UpstreamError if it cannot be loaded."""
        await self.control.load(self.model)

    async def ensure(self) -> None:
        """Load the model, if it is not; raises what `load` does."""
        await self.control.ensure(self.model)

    async def unload(self) -> None:
        """Unload the model, if it is loaded here."""
        await self.control.unload(self.model)

    def status(self) -> ModelStatus | None:
        """Return the model's last status; None if the model is not here."""
        return self.models.current().get(self.model)

    def check_ready(self) -> None:
        """Return if one of the model's processes can be called."""
        self.models.callable_sockets(self.model)


@dataclass(frozen=True, slots=True)
class Engine(_Kept):
    """Fits `plugin.connector_protocol.ModelProtocol`: a model that an engine's own server runs.

    Its connector is that of any provider with OpenAI's interface, but for the server's address and key.
    """

    calls: EngineCalls

    @property
    def own_requests(self) -> None:
        """None: the connector has templates."""
        return

    def open(
        self, request: ProviderRequest, further: NextRequest | None = None
    ) -> AbstractAsyncContextManager[UpstreamResponse]:
        """Call the model's server, which takes one request."""
        return self.calls.open(request, self.connector.client_config)


@dataclass(frozen=True, slots=True)
class Runtime(_Kept, SpeaksV2):
    """Fits `plugin.connector_protocol.ModelProtocol`: the runtime of one model, `model` by name."""

    calls: RuntimeCalls

    @property
    def own_requests(self) -> "Runtime":
        """The runtime itself: there are no templates."""
        return self

    @property
    def spec(self) -> Streaming:
        """The decoder of runtimes' streams."""
        return RUNTIME_STREAM

    @property
    def inputs(self) -> ModelInputs:
        """The members of conversations that become tensors and parameters."""
        return CONVERSATION_INPUTS

    def action(self, action_type: str) -> RuntimeAction:
        """Return the action to predict, the only one; InvalidRequest for another type."""
        action = self.connector.action(action_type)
        if action_type != PREDICT:
            raise InvalidRequest(f"A runtime has no action of the type {action_type}")
        return RuntimeAction(action, self.connector.parameters)

    def steps(self, predict_input: PredictInput) -> Sequence[Step]:
        """Return the calls of a whole prediction."""
        return predict_steps(self.connector.parameters, predict_input)

    def readable_text(self, body: bytes) -> str:
        """Return a request with its base64 texts decoded."""
        return readable_body(body)

    def open(
        self, request: ProviderRequest, further: NextRequest | None = None
    ) -> AbstractAsyncContextManager[UpstreamResponse]:
        """Call the model's process."""
        return self.calls.open(request, further)

    def handle(self, message: bytes) -> AbstractAsyncContextManager[UpstreamResponse]:
        """Call a custom handler of the model."""
        return self.calls.handle(self.model, message)

    @property
    def version(self) -> str | None:
        """The version in the model's settings."""
        status = self.status()
        return None if status is None else status.version

    def inference_parameters(self, request: InferenceRequest, id: str, *, has_fallbacks: bool) -> Mapping[str, str]:
        """Return the request as one parameter."""
        return inference_parameters(request, id, has_fallbacks=has_fallbacks)

    def metadata(self, name: str, versions: Sequence[str], parameters: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return what the model said of itself when it was loaded."""
        status = self.status() or ModelStatus()
        return {
            "name": name,
            "versions": status.versions or (versions if status.version is None else [status.version]),
            "platform": status.platform or "",
            "inputs": status.inputs,
            "outputs": status.outputs,
            "parameters": {**status.parameters, **parameters},
        }
