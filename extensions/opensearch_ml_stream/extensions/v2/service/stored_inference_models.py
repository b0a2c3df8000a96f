"""The use cases of the V2 protocol: inferences by the models in the store, and these models themselves."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar
from uuid import uuid4

from opensearch_ml_stream.connectors.documents import read_model
from opensearch_ml_stream.connectors.errors import Forbidden, InvalidRequest, NotFound, Unavailable
from opensearch_ml_stream.connectors.model_options import InputOptions, read_sidecar_settings
from opensearch_ml_stream.connectors.predict.inputs import RemoteInput
from opensearch_ml_stream.connectors.predict.model_inputs import TEXT, ModelInputs, find_model_inputs
from opensearch_ml_stream.connectors.rendering.template import ConnectorParameters
from opensearch_ml_stream.extensions.v2.http.use_cases import Inference, NextInference, UnreadRequest
from opensearch_ml_stream.extensions.v2.protocol.json_responses import STRING
from opensearch_ml_stream.extensions.v2.protocol.local_responses import LocalResponse, find_local_response
from opensearch_ml_stream.extensions.v2.protocol.messages import InferenceRequest, InferenceResponse, ResponseShape
from opensearch_ml_stream.extensions.v2.protocol.predict_inputs import DOCUMENTS, QUERY, predict_inputs
from opensearch_ml_stream.extensions.v2.protocol.predict_outputs import inference_response
from opensearch_ml_stream.extensions.v2.service.local_models import (
    KnowsReadiness,
    SpeaksV2,
    Unloaded,
    own_errors,
    repositories,
)
from opensearch_ml_stream.extensions.v2.service.model_names import ModelNames, model_not_found, version_of
from opensearch_ml_stream.plugin.connector_protocol import ConnectorProtocol, find_protocol
from opensearch_ml_stream.plugin.parallel import run_parallel
from opensearch_ml_stream.plugin.predictions.compiled_model import CompiledModel
from opensearch_ml_stream.plugin.predictions.model_cache import ModelCache
from opensearch_ml_stream.plugin.predictions.predictor import NextInput, Predictor
from opensearch_ml_stream.plugin.predictions.whole_prediction import MAX_PARALLEL_CALLS
from opensearch_ml_stream.plugin.registry.deployment_state_store import is_deployed, is_undeployed
from opensearch_ml_stream.plugin.registry.models import Models
from opensearch_ml_stream.plugin.registry.stored_documents import IS_REMOTE, Json, connector_of, existing_model
from opensearch_ml_stream.plugin.settings import remote_inference_disabled
from opensearch_ml_stream.rest_handlers.callers import Caller
from opensearch_ml_stream.rest_handlers.routes.predict_stream import ProviderStream

MAX_INDEXED = 10_000  # models of the repository's index: as far as a search goes
_TO_INFER = "Send them to infer"
_NO_MODEL = "Failed to find model"  # how ML Commons begins to say so
MAX_BYTES_AT_ONCE = 64 * 1024  # larger requests are read in a thread
PLATFORM = "remote"
_NUMBERS = {"name": "output", "datatype": "FP32", "shape": [-1, -1]}

_T = TypeVar("_T")


class ReadingThread:
    """Reads one large request at a time: a worker holds the values of one, whatever comes at once.

    Streams go on meanwhile, since Python lets the event loop run every 5 ms.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "reading")

    async def run(self, size: int, read: Callable[[], _T]) -> _T:
        """Return what `read` returns for a request of `size` bytes."""
        if size <= MAX_BYTES_AT_ONCE:
            return read()
        return await asyncio.get_running_loop().run_in_executor(self._thread, read)


@dataclass(frozen=True, slots=True)
class StoredInferenceModels:
    """The use cases, `v2.http.use_cases.InferenceModels`."""

    names: ModelNames
    compiled: ModelCache
    predictor: Predictor
    models: Models
    protocols: Sequence[ConnectorProtocol] = ()
    reading: ReadingThread = field(default_factory=ReadingThread)

    async def prepare(self, caller: Caller, name: str, version: str | None, request: UnreadRequest) -> Inference:
        """Return the inference for a request; the model is deployed if a prediction would deploy it."""
        model_id = await self.names.model_id(caller, name, version)
        with self._worded(model_id, name, version):
            model = await self.compiled.get(caller, model_id)
        if isinstance(model.protocol, SpeaksV2):
            make = partial(_of_local, caller, model, model.protocol)
        else:
            make = partial(_of_remote, caller, model, name, version or version_of(model.definition.document))
        return await self.reading.run(request.size, lambda: make(request.read()))

    def stream(
        self, inference: Inference, further: NextInference | None = None
    ) -> AbstractAsyncContextManager[ProviderStream]:
        """Open the provider's stream. InvalidRequest, on entering it, for anything but one text to answer."""
        if len(inference.inputs) > 1:
            return _refuse(
                f"A stream takes one text; the request has {len(inference.inputs)}. {_TO_INFER}, or one by one"
            )
        if not all(isinstance(one, RemoteInput) for one in inference.inputs):
            return _refuse(f"The model makes embeddings or scores of texts, which do not stream. {_TO_INFER}")
        return self._opened(inference, None if further is None else partial(_next_input, further))

    @asynccontextmanager
    async def _opened(self, inference: Inference, further: NextInput | None) -> AsyncIterator[ProviderStream]:
        stream = self.predictor.stream(inference.caller, inference.model_id, inference.parameters, further=further)
        with self._worded(inference.model_id, inference.shape.model_name, None), own_errors():
            async with stream as opened:
                yield opened

    async def infer(self, inference: Inference) -> InferenceResponse | LocalResponse:
        """Make a whole inference: the predictions of several texts in parallel, the response in their order."""
        with self._worded(inference.model_id, inference.shape.model_name, None), own_errors():
            return await self._infer(inference)

    async def _infer(self, inference: Inference) -> InferenceResponse | LocalResponse:
        caller, model_id = inference.caller, inference.model_id
        if inference.shape.is_local:
            prediction = await self.predictor.predict_input(caller, model_id, inference.inputs[0])
            own = find_local_response(inference.shape, prediction)
            return inference_response(inference.shape, [prediction]) if own is None else own
        limit = 1
        if len(inference.inputs) > 1:
            connector = (await self.compiled.get(caller, model_id)).connector
            limit = min(MAX_PARALLEL_CALLS, connector.client_config.max_connection)
        calls = [partial(self.predictor.predict_input, caller, model_id, one) for one in inference.inputs]
        return inference_response(inference.shape, await run_parallel(calls, limit))

    async def metadata(self, caller: Caller, name: str, version: str | None) -> Mapping[str, Any]:
        """Return the metadata of a model, with its id and description in `parameters`."""
        model_id = await self.names.model_id(caller, name, version)
        with self._worded(model_id, name, version):
            view = await self.models.get(caller, model_id)
        model = read_model(view)
        connector, _ = await connector_of(self.models.store, view)
        parameters = {"model_id": model_id, "description": view.get("description")}
        parameters = {name: value for name, value in parameters.items() if value is not None}
        versions = await self.names.versions(caller, model.name)
        protocol = find_protocol(self.protocols, model_id, connector)
        if isinstance(protocol, SpeaksV2):
            return protocol.metadata(name, versions, parameters)
        prompt = read_sidecar_settings(view.get("_sidecar", {}), self.models.options).of(InputOptions).prompt
        inputs = find_model_inputs(connector.action(), ConnectorParameters.compile(connector.parameters), prompt)
        tensors = metadata_tensors(inputs)
        return {"name": name, "versions": versions, "platform": PLATFORM, **tensors, "parameters": parameters}

    async def check_ready(self, caller: Caller, name: str, version: str | None) -> None:
        """Return if the model is deployed, or a prediction would deploy it; nothing is deployed here."""
        if not self.models.live_settings.current.remote_inference_enabled:
            raise remote_inference_disabled()
        model_id = await self.names.model_id(caller, name, version)
        with self._worded(model_id, name, version):
            document = await existing_model(self.models.store, model_id)
        await self.models.access.check(caller, document.source)
        if document.source.get("is_enabled") is False:
            raise Forbidden("Model is disabled.")
        await self.models.deployment.is_ready(model_id, document)
        protocol = find_protocol(self.protocols, model_id, read_model(document.source).connector)
        if isinstance(protocol, KnowsReadiness):
            protocol.check_ready()

    async def index(self, caller: Caller, *, ready: bool) -> Sequence[Mapping[str, Any]]:
        """Return the newest models that the caller may see, at most MAX_INDEXED; READY is what can be called."""
        fields = ["name", "model_version", "model_state", "is_enabled", "deploy_setting", "connector.actions"]
        body = {"query": IS_REMOTE, "size": MAX_INDEXED, "sort": [{"created_time": "desc"}], "_source": fields}
        hits = (await self.models.search(caller, body))["hits"]["hits"]
        entries = [{**self._index_entry(hit["_source"]), **self._local_entry(hit)} for hit in hits]
        return [entry for entry in entries if entry["state"] == "READY"] if ready else entries

    async def load(self, caller: Caller, name: str) -> None:
        """Deploy the model, of several versions the newest; one that has come to a repository since is found."""
        for repository in repositories(self.protocols):
            with suppress(Unavailable):  # loading its model says so again, and a remote model needs no repository
                await repository.find_new(name)
        model_id = (await self.names.ids(caller, name))[0]
        with self._worded(model_id, name, None):
            await self.models.deploy(caller, model_id, {})

    async def unload(self, caller: Caller, name: str) -> None:
        """Undeploy all versions of the model; it is not found until it is loaded again."""
        for model_id in await self.names.ids(caller, name):
            with self._worded(model_id, name, None):
                await self.models.undeploy(caller, model_id, {})
            self.names.forget(model_id)

    @contextmanager
    def _worded(self, model_id: str, name: str, version: str | None) -> Iterator[None]:
        """Raise NotFound in MLServer's words if a model was deleted or unloaded since its name was looked up."""
        try:
            yield
        except Unloaded:
            raise model_not_found(name, version) from None
        except NotFound as error:
            if not error.reason.startswith(_NO_MODEL):
                raise
            self.names.forget(model_id)
            raise model_not_found(name, version) from None

    def _local_entry(self, hit: Json) -> Json:
        """Return what a repository says of its model; nothing for a remote model."""
        entries = (each.index_entry(hit["_id"], hit["_source"]) for each in repositories(self.protocols))
        return next((entry for entry in entries if entry), {})

    def _index_entry(self, model: Json) -> Json:
        reason, is_ready = self._readiness(model)
        state = "READY" if is_ready else "UNAVAILABLE"
        version = version_of(model)
        versions = {} if version is None else {"version": version}
        return {"name": model.get("name", ""), **versions, "state": state, "reason": reason}

    def _readiness(self, model: Json) -> tuple[str, bool]:
        """Return the reason for a model's state, "" if it is deployed, and whether it can be called."""
        if model.get("is_enabled") is False:
            return "disabled", False
        if is_deployed(model):
            return "", True
        if is_undeployed(model):
            return "undeployed", False
        may_deploy = (model.get("deploy_setting") or {}).get("is_auto_deploy_enabled") is not False
        if self.models.live_settings.current.model_auto_deploy_enable and may_deploy:
            return "the first prediction deploys it", True
        return "not deployed", False


def _of_remote(
    caller: Caller, model: CompiledModel, name: str, version: str | None, request: InferenceRequest
) -> Inference:
    """Return the inference of a remote model, whose templates say what it takes."""
    found = predict_inputs(request, model.inputs)
    output = request.outputs[0].name if request.outputs else "output"
    id = request.id or str(uuid4())
    shape = ResponseShape(name, version, id, "content" if found.is_chat else output, found.is_chat)
    return Inference(caller, model.model_id, found.inputs[0].parameters, shape, found.inputs)


def _of_local(caller: Caller, model: CompiledModel, own: SpeaksV2, request: InferenceRequest) -> Inference:
    """Return the inference of a local model: request and responses are passed on."""
    id = request.id or str(uuid4())
    output = request.outputs[0].name if request.outputs else "output"
    shape = ResponseShape(model.definition.name, own.version, id, output, is_local=True)
    has_fallbacks = bool(model.settings.fallback_model_ids)  # which take one request
    parameters = own.inference_parameters(request, id, has_fallbacks=has_fallbacks)
    inputs = [RemoteInput(parameters)]
    return Inference(caller, model.model_id, parameters, shape, inputs, takes_further=not has_fallbacks)


async def _next_input(further: NextInference) -> tuple[Caller, Mapping[str, str]] | None:
    inference = await further()
    return None if inference is None else (inference.caller, inference.parameters)


@asynccontextmanager
async def _refuse(reason: str) -> AsyncIterator[ProviderStream]:
    raise InvalidRequest(reason)
    yield


def metadata_tensors(model: ModelInputs) -> dict[str, Any]:
    """Return a remote model's tensors for its metadata, `{"inputs": [...], "outputs": [...]}`; -1 is any length.

    Parameters are shown if the model takes neither a text nor a chat: those without a default, if there are any.
    """
    if model.takes_texts:
        return {"inputs": [_strings(TEXT)], "outputs": [_NUMBERS]}
    if model.ranks:
        return {"inputs": [_strings(QUERY), _strings(DOCUMENTS)], "outputs": [_NUMBERS]}
    inputs = [_strings(model.prompt or TEXT)] if model.prompt or model.chat else []
    named = [_strings(name) for name in sorted(model.needed or model.free)]
    return {"inputs": inputs or named, "outputs": [_strings("output")]}


def _strings(name: str) -> dict[str, Any]:
    return {"name": name, "datatype": "BYTES", "shape": [-1], "parameters": STRING}
