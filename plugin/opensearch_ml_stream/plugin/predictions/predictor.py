"""The predict use cases, streamed, whole and batch, which every route and transport calls."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, TypeVar

from opensearch_ml_stream.connectors.conversation.answer import WholeAnswer
from opensearch_ml_stream.connectors.conversation.dialect import ClientRequest
from opensearch_ml_stream.connectors.documents import BATCH_PREDICT, PREDICT
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.predict.guardrails.configuration import INPUT_TRIGGERED, ModelGuard
from opensearch_ml_stream.connectors.predict.inputs import PredictInput, RemoteInput, read_predict_input
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.connectors.syntax.jsontext import to_json
from opensearch_ml_stream.plugin.limits.budgets import Charge
from opensearch_ml_stream.plugin.observation import Observation, Observations
from opensearch_ml_stream.plugin.predictions.batch_jobs import BatchJobs, asks_for_batch
from opensearch_ml_stream.plugin.predictions.compiled_model import CompiledModel
from opensearch_ml_stream.plugin.predictions.conversation_calls import StreamCall, stream_request
from opensearch_ml_stream.plugin.predictions.embedding_batches import EmbeddingBatches
from opensearch_ml_stream.plugin.predictions.fallback_models import first_to_respond
from opensearch_ml_stream.plugin.predictions.guarded_stream import GuardedStream
from opensearch_ml_stream.plugin.predictions.guardrail_checks import GuardrailChecks
from opensearch_ml_stream.plugin.predictions.model_cache import ModelCache
from opensearch_ml_stream.plugin.predictions.painless_runner import PainlessRunner
from opensearch_ml_stream.plugin.predictions.provider_call import ProviderCalls, check_status
from opensearch_ml_stream.plugin.predictions.provider_stream import ProviderStream
from opensearch_ml_stream.plugin.predictions.whole_prediction import (
    Respond,
    WholeCall,
    predict_answer,
    predict_whole,
    predict_whole_encoded,
)
from opensearch_ml_stream.plugin.settings import streaming_disabled
from opensearch_ml_stream.plugin.store import Store
from opensearch_ml_stream.rest_handlers.callers import Caller

T = TypeVar("T")

WHOLE_RESPONSE = "$"  # the JSON path of a guard model's response as its provider sent it
GUARDED_BY_ITSELF = "it is guarded, directly or through others, by this very guardrail"

MakeCall = Callable[[CompiledModel], StreamCall]
"""Makes the request of a stream for the model that is called: the one that was asked, or a fallback model."""

FindModel = Callable[[], Awaitable[str]]
"""Returns the id of the model that is asked."""

NextInput = Callable[[], Awaitable[tuple[Caller, Mapping[str, str]] | None]]
"""Returns whose a stream's next request is and its parameters, None if there are no more."""


class Predictor:
    """Streamed, whole and batch predictions of the models in a store, each observed."""

    def __init__(
        self,
        models: ModelCache,
        calls: ProviderCalls,
        store: Store,
        scripts: PainlessRunner,
        batch: BatchJobs,
        observations: Observations,
    ) -> None:
        self._models = models
        self._calls = calls
        self._batches = EmbeddingBatches(calls.fetch)
        self._store = store
        self._scripts = scripts
        self._batch = batch
        self._observations = observations

    def stream(
        self,
        caller: Caller,
        model_id: str,
        parameters: Mapping[str, str],
        action_type: str | None = None,
        further: NextInput | None = None,
    ) -> AbstractAsyncContextManager[ProviderStream | GuardedStream]:
        """Open the provider's stream, behind the model's output guardrail if it has one.

        The stream is yielded only after a 2xx head. Leaving the block closes it, finished or not. `further` are the
        further requests of a model with a protocol and no fallback models: part of this call in limits and budgets,
        each checked.

        Raises MLStreamError for what is wrong before the provider's first byte: the model, the request, the status.
        """
        return self._stream(caller, model_id, partial(_of_parameters, parameters, action_type), further)

    def converse(
        self, caller: Caller, find: FindModel, request: ClientRequest
    ) -> AbstractAsyncContextManager[ProviderStream | GuardedStream]:
        """Open the provider's stream as `stream` does, for the next answer in a client's conversation."""
        return self._stream(caller, find, partial(stream_request, request))

    @asynccontextmanager
    async def _stream(
        self, caller: Caller, which: str | FindModel, make: MakeCall, further: NextInput | None = None
    ) -> AsyncIterator[ProviderStream | GuardedStream]:
        if not self._calls.live_settings.current.stream_enabled:
            raise streaming_disabled()
        model_id = which if isinstance(which, str) else await which()
        with self._observations.stream(caller) as observed:
            model = await self._models.get(caller, model_id)
            observed.set_model(model_id)
            async with AsyncExitStack() as held:
                if model.settings.fallback_model_ids:
                    stream = await self._open_any(held, observed, model, make)
                else:
                    stream = await self._open(held, observed, model, make, further=further)
                del make  # a prompt may be large, and the stream of its response long
                observed.set_stream(stream)
                yield stream

    async def _open(
        self,
        held: AsyncExitStack,
        observed: Observation,
        model: CompiledModel,
        make: MakeCall,
        *,
        further: NextInput | None = None,
        has_fallbacks: bool = False,
    ) -> ProviderStream | GuardedStream:
        """Open the stream of one model; its resources, such as the provider's call, are released with `held`.

        If another model may answer in its place, wait for the first chunk, and name the model in the response.
        """
        request, new_decoder, warnings, client = make(model)
        charge = await self.admit(held, observed, model, request, client)
        bodies = None if further is None else partial(self._further_body, model.model_id, further)
        response = await held.enter_async_context(self._calls.open(model, request, bodies))
        await check_status(response, model)
        stream = ProviderStream(response, new_decoder(), model.redactor, charge, model.providers)
        stream.warnings = warnings
        if has_fallbacks:
            stream.answered_by = model.model_id
            await stream.read_ahead()
        return self._guarded(observed.caller, stream, model)

    async def admit(
        self,
        held: AsyncExitStack,
        observed: Observation,
        model: CompiledModel,
        request: ProviderRequest,
        client: ClientRequest | None = None,
    ) -> Charge | None:
        """Check a call against input guardrail, limits and budgets; what it takes of them is released with `held`.

        `client` is the conversation that the request was made of, if it was made of one.
        """
        charge, settings = None, self._calls.live_settings.current
        if model.has_limits or settings.max_streams_per_server or settings.max_streams_per_user:
            charge = await self._check_limits(held, observed.caller, model, request, client)
        observed.admit()
        return charge

    async def _check_limits(
        self,
        held: AsyncExitStack,
        caller: Caller,
        model: CompiledModel,
        request: ProviderRequest,
        client: ClientRequest | None,
    ) -> Charge | None:
        streams, limits = self._calls.open_streams, model.settings.limits
        if streams.are_capped(limits):
            await held.enter_async_context(streams.place(model.model_id, limits, caller.name))
        await self._check_guardrail(caller, model, request, client)
        self._calls.apply_rate_limits(model, caller)
        if (charge := await self._calls.charge(model, caller, request.body)) is not None:
            held.enter_context(charge)
        return charge

    async def _further_body(self, model_id: str, further: NextInput) -> bytes | None:
        """Return the body of a stream's next request, which is checked as the first was; None if there are no more."""
        if (found := await further()) is None:
            return None
        caller, parameters = found
        model = await self._models.get(caller, model_id)
        request = _of_parameters(parameters, None, model).request
        await self._check_guardrail(caller, model, request)
        return request.body

    async def _check_guardrail(
        self, caller: Caller, model: CompiledModel, request: ProviderRequest, client: ClientRequest | None = None
    ) -> None:
        if (guard := model.guardrails.input) is not None:
            checks = self._guardrail_checks(caller, (model.model_id,))
            said = "" if client is None else client.said()
            await checks.check(guard, model.readable_text(request), INPUT_TRIGGERED, said)

    async def _open_any(
        self,
        held: AsyncExitStack,
        observed: Observation,
        model: CompiledModel,
        make: MakeCall,
    ) -> ProviderStream | GuardedStream:
        """Open the stream of the model or, where it fails before its first chunk, of one of its fallback models."""

        async def attempt(one: CompiledModel) -> ProviderStream | GuardedStream:
            async with AsyncExitStack() as opened:
                stream = await self._open(opened, observed, one, make, has_fallbacks=True)
                held.push_async_exit(opened.pop_all())
            return stream

        find = partial(self._find_fallback, observed.caller, ())
        return await first_to_respond(model, attempt, find, observed.fall_back)

    async def _find_fallback(self, caller: Caller, guarded: tuple[str, ...], model_id: str) -> CompiledModel:
        """Return a fallback model that the caller may use, unless it is waiting for this prediction itself."""
        if model_id in guarded:
            raise InvalidRequest(GUARDED_BY_ITSELF)
        return await self._models.get(caller, model_id)

    async def predict(
        self, caller: Caller, model_id: str, body: bytes, algorithm: str | None = None
    ) -> Mapping[str, Any]:
        """Return a whole prediction, `{"inference_results": [...]}`, or what the body's `action_type` asks for."""
        predict_input = read_predict_input(body, algorithm)
        if asks_for_batch(predict_input, PREDICT):
            return await self._create_job(caller, model_id, predict_input)
        return await self._predict(caller, model_id, predict_input, (), predict_whole)

    async def predict_encoded(self, caller: Caller, model_id: str, body: bytes, algorithm: str | None = None) -> bytes:
        """Return the response of `predict` as compact JSON."""
        predict_input = read_predict_input(body, algorithm)
        if asks_for_batch(predict_input, PREDICT):
            return to_json(await self._create_job(caller, model_id, predict_input))
        return await self._predict(caller, model_id, predict_input, (), predict_whole_encoded)

    async def converse_whole(self, caller: Caller, model_id: str, request: ClientRequest) -> WholeAnswer:
        """Return the next answer in a client's conversation, in one piece."""
        return await self._predict(caller, model_id, RemoteInput(), (), partial(predict_answer, request))

    async def predict_input(self, caller: Caller, model_id: str, predict_input: PredictInput) -> Mapping[str, Any]:
        """Return a whole prediction of an input that was read already."""
        return await self._predict(caller, model_id, predict_input, (), predict_whole)

    async def batch_predict(self, caller: Caller, model_id: str, body: bytes) -> Mapping[str, Any]:
        """Start a batch job and return its task, `{"task_id", "status", "remote_job"}`; see `predict`."""
        predict_input = read_predict_input(body)
        if asks_for_batch(predict_input, BATCH_PREDICT):
            return await self._create_job(caller, model_id, predict_input)
        return await self._predict(caller, model_id, predict_input, (), predict_whole)

    async def _create_job(self, caller: Caller, model_id: str, predict_input: PredictInput) -> Mapping[str, Any]:
        remote_input = self._batch.check(predict_input)
        with self._observations.batch_job(model_id):
            checks = self._guardrail_checks(caller, (model_id,))
            return await self._batch.create(caller, model_id, remote_input, checks)

    def _guarded(self, caller: Caller, stream: ProviderStream, model: CompiledModel) -> ProviderStream | GuardedStream:
        if (guard := model.guardrails.output) is None:
            return stream
        held = self._calls.live_settings.current.guardrail_held_characters
        return GuardedStream(stream, guard, self._guardrail_checks(caller, (model.model_id,)), held)

    async def _predict(
        self, caller: Caller, model_id: str, predict_input: PredictInput, guarded: tuple[str, ...], respond: Respond[T]
    ) -> T:
        """Predict, observed; `guarded` are the models whose guardrails have led to this prediction."""
        with self._observations.whole(caller) as observed:
            model = await self._models.get(caller, model_id)
            observed.set_model(model_id)
            if not model.settings.fallback_model_ids:
                return await self._predict_by(observed, model, predict_input, guarded, respond)
            return await first_to_respond(
                model,
                lambda one: self._predict_by(observed, one, predict_input, guarded, respond, names_model=True),
                partial(self._find_fallback, caller, guarded),
                observed.fall_back,
            )

    async def _predict_by(
        self,
        observed: Observation,
        model: CompiledModel,
        predict_input: PredictInput,
        guarded: tuple[str, ...],
        respond: Respond[T],
        *,
        names_model: bool = False,
    ) -> T:
        """Predict by one model. Among open streams, a guard model's prediction is part of the one that it guards."""
        caller, send = observed.caller, self._batches.sending(model, predict_input)
        fetch = partial(self._calls.fetch_within_limits, model, observed, send)
        checks = self._guardrail_checks(caller, (*guarded, model.model_id))
        call = WholeCall(model, predict_input, fetch, self._scripts, checks, names_model)
        streams, limits = self._calls.open_streams, model.settings.limits
        if guarded or not streams.are_capped(limits):
            return await respond(call)
        async with streams.place(model.model_id, limits, caller.name):
            return await respond(call)

    def _guardrail_checks(self, caller: Caller, guarded: tuple[str, ...]) -> GuardrailChecks:
        return GuardrailChecks(self._store, partial(self._call_guard_model, caller, guarded))

    async def _call_guard_model(self, caller: Caller, guarded: tuple[str, ...], guard: ModelGuard, text: str) -> Any:
        """Return a guard model's response to a text.

        A guard with a `response_filter` gets the provider's whole response; one without, the field `response` if any.
        """
        if guard.model_id in guarded:
            raise InvalidRequest(GUARDED_BY_ITSELF)
        parameters = {"question": text} | ({"response_filter": WHOLE_RESPONSE} if guard.response_filter else {})
        prediction = await self._predict(caller, guard.model_id, RemoteInput(parameters), guarded, predict_whole)
        output = prediction["inference_results"][0]["output"]
        response = output[0].get("dataAsMap", {}) if output else {}
        return response if guard.response_filter else response.get("response", response)


def _of_parameters(parameters: Mapping[str, str], action_type: str | None, model: CompiledModel) -> StreamCall:
    """Make the request of a stream from predict parameters. Raises InvalidRequest as a stream's opening does."""
    if action_type == BATCH_PREDICT:
        raise InvalidRequest("A batch job does not stream: POST it to _batch_predict")
    action_type = action_type or PREDICT
    action, streaming = model.action(action_type), model.spec(parameters, action_type)
    model.check_input(RemoteInput(parameters))
    request = action.render(parameters, streaming)
    return StreamCall(request, streaming.decoder, model.warnings(parameters, action_type))
