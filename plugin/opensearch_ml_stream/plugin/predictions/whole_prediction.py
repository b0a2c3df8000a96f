"""A prediction that is not streamed: one call of the provider, or several in parallel with results in order.

The model's interface, the connector's functions, the templates and the input guardrail are all checked before the
provider is first called.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from opensearch_ml_stream.connectors.conversation.answer import WholeAnswer
from opensearch_ml_stream.connectors.conversation.dialect import ClientRequest
from opensearch_ml_stream.connectors.documents import PREDICT, Action
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.predict import post_process, pre_process
from opensearch_ml_stream.connectors.predict.encoded_results import (
    encode_embeddings,
    encode_tensors,
    join_outputs,
)
from opensearch_ml_stream.connectors.predict.guardrails.configuration import INPUT_TRIGGERED, OUTPUT_TRIGGERED
from opensearch_ml_stream.connectors.predict.inputs import PredictInput, RemoteInput
from opensearch_ml_stream.connectors.predict.painless import PainlessCall
from opensearch_ml_stream.connectors.predict.tensors import Tensor
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.connectors.syntax.jsontext import to_json
from opensearch_ml_stream.plugin.connector_protocol import ModelAction
from opensearch_ml_stream.plugin.parallel import run_parallel
from opensearch_ml_stream.plugin.predictions.compiled_model import CompiledModel
from opensearch_ml_stream.plugin.predictions.conversation_calls import read_answer, whole_request
from opensearch_ml_stream.plugin.predictions.guardrail_checks import GuardrailChecks
from opensearch_ml_stream.plugin.predictions.painless_runner import PainlessRunner

T = TypeVar("T")

MAX_PARALLEL_CALLS = 8  # of one prediction; a connector's max_connection may allow fewer
MAX_REQUEST_BYTES = 32 * 1024 * 1024  # of all calls of one prediction, whose parameters are in each of their requests

Fetch = Callable[[ProviderRequest], Awaitable[bytes]]
"""Sends a request to the provider and returns the body of its 2xx response."""

Response = tuple[bytes, int | None]
"""The body of a response, and of how many inputs it is; see `Step.inputs`."""


@dataclass(frozen=True, slots=True)
class WholeCall:
    """A whole prediction by one model. With `names_model` the response has the model's id, in `model_id`."""

    model: CompiledModel
    predict_input: PredictInput
    fetch: Fetch
    scripts: PainlessRunner
    checks: GuardrailChecks
    names_model: bool = False

    @property
    def warnings(self) -> Sequence[str]:
        """Hints at parameters that the connector has no place for."""
        predict_input = self.predict_input
        action_type = predict_input.action_type if isinstance(predict_input, RemoteInput) else None
        return self.model.warnings(predict_input.parameters, action_type)


Respond = Callable[[WholeCall], Awaitable[T]]
"""Makes a whole prediction by one model and returns its response in one of the forms below."""


async def predict_whole(call: WholeCall) -> dict[str, Any]:
    """Return `{"inference_results": [{"output": [...], "status_code": 200}, ...]}`, one element per provider call.

    If one call fails, the prediction fails.
    """
    fetched = await _call_provider(call)
    outputs = await read_responses(fetched.action, fetched.parameters, fetched.responses, call.scripts)
    response: dict[str, Any] = {"inference_results": [{"output": output, "status_code": 200} for output in outputs]}
    call.model.check_output(response)
    if call.names_model:
        response["model_id"] = call.model.model_id
    if warnings := call.warnings:
        response["warnings"] = list(warnings)
    return response


async def predict_whole_encoded(call: WholeCall) -> bytes:
    """Return the response of `predict_whole` as compact JSON, its embeddings as the provider wrote their numbers."""
    if call.names_model or call.model.promises_output or call.warnings:  # all of the response is then read or added to
        return to_json(await predict_whole(call))
    fetched = await _call_provider(call)
    place = post_process.embedding_path(fetched.action, fetched.parameters)
    if place is None:
        tensors = await read_responses(fetched.action, fetched.parameters, fetched.responses, call.scripts)
        return encode_tensors(tensors)
    outputs = [encode_embeddings(place, body, inputs) for body, inputs in fetched.responses]
    others = [response for output, response in zip(outputs, fetched.responses, strict=True) if output is None]
    parsed = iter(await read_responses(fetched.action, fetched.parameters, others, call.scripts))
    return join_outputs([[to_json(next(parsed))] if output is None else output for output in outputs])


async def predict_answer(request: ClientRequest, call: WholeCall) -> WholeAnswer:
    """Return the next answer in a client's conversation, which stands in for the input."""
    [body] = await _fetch_checked(call, [whole_request(request, call.model)], request)
    return read_answer(body, request, call.model, names_model=call.names_model)


@dataclass(frozen=True, slots=True)
class _Fetched:
    """The provider's responses, and the action and parameters to read them with."""

    action: Action
    parameters: Mapping[str, str]  # the connector's, with the request's laid over them
    responses: Sequence[Response]


async def _call_provider(call: WholeCall) -> _Fetched:
    """Check the input, render the requests and fetch their responses, in order."""
    model, predict_input = call.model, call.predict_input
    asked = predict_input.action_type if isinstance(predict_input, RemoteInput) else None
    action = model.action(asked or PREDICT)
    parameters = {**model.connector.parameters, **predict_input.parameters}
    if isinstance(predict_input, RemoteInput):
        model.check_input(predict_input)
    post_process.check(action.action, parameters)
    steps = await run_script_steps(model.steps(action, predict_input), call.scripts)
    if not isinstance(predict_input, RemoteInput):
        _check_input(model, predict_input, steps)
    bodies = await _fetch_checked(call, _render_all(action, steps))
    return _Fetched(action.action, parameters, list(zip(bodies, [step.inputs for step in steps], strict=True)))


async def _fetch_checked(
    call: WholeCall, requests: Sequence[ProviderRequest], client: ClientRequest | None = None
) -> list[bytes]:
    """Fetch the responses to requests, in order, each request and response checked by the model's guardrails.

    `client` is the conversation that the requests were made of, if they were made of one.
    """
    model, checks, guardrails = call.model, call.checks, call.model.guardrails
    limit = min(MAX_PARALLEL_CALLS, model.connector.client_config.max_connection)
    if guardrails.input is not None:
        said = "" if client is None else client.said()
        texts = [model.readable_text(request) for request in requests]
        check = partial(checks.check, guardrails.input, triggered=INPUT_TRIGGERED, said=said)
        await run_parallel([partial(check, text) for text in texts], limit)

    async def checked_fetch(request: ProviderRequest) -> bytes:
        body = await call.fetch(request)
        await checks.check(guardrails.output, body.decode("utf-8", "replace"), OUTPUT_TRIGGERED)
        return body

    fetch = call.fetch if guardrails.output is None else checked_fetch
    return await run_parallel([partial(fetch, request) for request in requests], limit)


def _render_all(action: ModelAction, steps: Sequence[pre_process.Step]) -> list[ProviderRequest]:
    """Render the request of each step. InvalidRequest for more bytes than one prediction may send."""
    requests: list[ProviderRequest] = []
    size = 0
    for step in steps:
        requests.append(action.render(step.parameters))
        size += len(requests[-1].body)
        if size > MAX_REQUEST_BYTES and len(steps) > 1:
            raise InvalidRequest(f"The provider's requests for this input have more than {MAX_REQUEST_BYTES} bytes")
    return requests


def _check_input(model: CompiledModel, predict_input: PredictInput, steps: Sequence[pre_process.Step]) -> None:
    """Accept an input of texts if the interface allows it as the caller sent it, or with the parameters of every step.

    An interface may describe either. Raises the error of the input as the caller sent it.
    """
    try:
        model.check_input(predict_input)
    except InvalidRequest as error:
        try:
            model.check_input(predict_input, [step.parameters for step in steps])
        except InvalidRequest:
            raise error from None


async def read_responses(
    action: Action, parameters: Mapping[str, str], responses: Sequence[Response], scripts: PainlessRunner
) -> list[list[Tensor]]:
    """Return the tensors of each response, in order."""
    outputs = [post_process.read_response(action, parameters, body, inputs) for body, inputs in responses]
    tensors = [output for output in outputs if not isinstance(output, PainlessCall)]
    if len(tensors) == len(outputs):
        return tensors
    results = iter(await scripts.run([output for output in outputs if isinstance(output, PainlessCall)]))
    return [
        post_process.read_script_result(parameters, body, next(results)) if isinstance(output, PainlessCall) else output
        for output, (body, _) in zip(outputs, responses, strict=True)
    ]


async def run_script_steps(
    steps: Sequence[pre_process.Step | pre_process.ScriptStep], scripts: PainlessRunner
) -> list[pre_process.Step]:
    """Return the steps in order, each ScriptStep replaced by the Step that its script makes."""
    ready = [step for step in steps if isinstance(step, pre_process.Step)]
    if len(ready) == len(steps):
        return ready
    results = iter(await scripts.run([step.call for step in steps if isinstance(step, pre_process.ScriptStep)]))
    return [
        pre_process.finish_step(step, next(results)) if isinstance(step, pre_process.ScriptStep) else step
        for step in steps
    ]
