"""One prediction that is not streamed: one call of the provider, or several beside each other, results in order.

Everything that can be refused is refused before the first provider is called: the model's interface, the connector's
functions, the templates and the input guardrail.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from opensearch_ml_stream.connectors.documents import Action
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.predict import post_process, pre_process
from opensearch_ml_stream.connectors.predict.guardrails import INPUT_TRIGGERED, OUTPUT_TRIGGERED
from opensearch_ml_stream.connectors.predict.inputs import PredictInput, RemoteInput
from opensearch_ml_stream.connectors.predict.painless import PainlessCall
from opensearch_ml_stream.connectors.predict.tensors import Tensor
from opensearch_ml_stream.connectors.rendering.action import ProviderRequest
from opensearch_ml_stream.plugin.predictions.guardrail_checks import GuardrailChecks
from opensearch_ml_stream.plugin.predictions.painless_runs import PainlessRunner
from opensearch_ml_stream.plugin.predictions.parallel_calls import run_in_order
from opensearch_ml_stream.plugin.predictions.ready_models import ReadyModel

MAX_PARALLEL_CALLS = 8  # of one prediction; a connector's max_connection may allow fewer

Fetch = Callable[[ProviderRequest], Awaitable[bytes]]
Result = dict[str, Any]


async def predict_whole(
    model: ReadyModel, given: PredictInput, fetch: Fetch, scripts: PainlessRunner, guards: GuardrailChecks
) -> Result:
    """`{"inference_results": [{"output": [...], "status_code": 200}, ...]}`, an element for each call of the provider.

    `fetch` sends a request and gives the body of a good answer. Any call that fails fails all of them.
    """
    connector = model.connector
    action = model.action()
    parameters = {**connector.parameters, **given.parameters}
    if isinstance(given, RemoteInput):
        model.check_input(given)
    post_process.check(action.action, parameters)
    steps = await scripted(pre_process.steps(action.action, connector.parameters, given), scripts)
    if not isinstance(given, RemoteInput):
        _check_input(model, given, steps)
    requests = [action.render(step.parameters) for step in steps]
    rails = model.guardrails
    parallel = min(MAX_PARALLEL_CALLS, connector.client_config.max_connection)
    if rails.input is not None:
        texts = [request_text(request, parameters) for request in requests]
        await run_in_order([partial(guards.check, rails.input, text, INPUT_TRIGGERED) for text in texts], parallel)

    async def call(request: ProviderRequest) -> bytes:
        body = await fetch(request)
        if rails.output is not None:
            await guards.check(rails.output, body.decode("utf-8", "replace"), OUTPUT_TRIGGERED)
        return body

    bodies = await run_in_order([partial(call, request) for request in requests], parallel)
    outputs = await read_responses(action.action, parameters, bodies, scripts)
    response = {"inference_results": [{"output": output, "status_code": 200} for output in outputs]}
    model.check_output(response)
    return response


def _check_input(model: ReadyModel, given: PredictInput, steps: Sequence[pre_process.Step]) -> None:
    """As `check_input`, for texts: an interface may speak of the parameters that they become."""
    try:
        model.check_input(given)
    except InvalidRequest as error:
        for step in steps:
            try:
                model.check_input(replace(given, parameters=step.parameters))
            except InvalidRequest:
                raise error from None


def request_text(request: ProviderRequest, parameters: Mapping[str, str]) -> str:
    """The body as text. `charset` is a parameter: read as UTF-8 alone, a body could pass a guardrail unseen."""
    return request.body.decode(parameters.get("charset") or "utf-8", "replace")


async def read_responses(
    action: Action, parameters: Mapping[str, str], bodies: Sequence[bytes], scripts: PainlessRunner
) -> list[list[Tensor]]:
    """The tensors of each answer."""
    outputs = [post_process.output(action, parameters, body) for body in bodies]
    results = iter(await scripts.run([output for output in outputs if isinstance(output, PainlessCall)]))
    return [
        post_process.after_script(parameters, body, next(results)) if isinstance(output, PainlessCall) else output
        for output, body in zip(outputs, bodies, strict=True)
    ]


async def scripted(
    steps: Sequence[pre_process.Step | pre_process.ScriptStep], scripts: PainlessRunner
) -> list[pre_process.Step]:
    """The steps with those that a script makes made."""
    results = iter(await scripts.run([step.call for step in steps if isinstance(step, pre_process.ScriptStep)]))
    return [
        pre_process.after_script(step, next(results)) if isinstance(step, pre_process.ScriptStep) else step
        for step in steps
    ]
