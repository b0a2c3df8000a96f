"""The forms in which the result of a whole prediction is returned: the object of the API, or that object as JSON."""

from collections.abc import Awaitable, Sequence
from typing import Any, Protocol, TypeVar

from opensearch_ml_stream.connectors.conversation.answer import WholeAnswer
from opensearch_ml_stream.connectors.conversation.dialect import ClientRequest
from opensearch_ml_stream.connectors.predict.inputs import PredictInput, RemoteInput
from opensearch_ml_stream.connectors.syntax.compact_json import to_json
from opensearch_ml_stream.plugin.predictions.compiled_model import CompiledModel
from opensearch_ml_stream.plugin.predictions.conversation_calls import read_answer, whole_request
from opensearch_ml_stream.plugin.predictions.guardrail_checks import GuardrailChecks
from opensearch_ml_stream.plugin.predictions.painless_runner import PainlessRunner
from opensearch_ml_stream.plugin.predictions.whole_prediction import (
    Fetch,
    fetch_checked,
    predict_whole,
    predict_whole_encoded,
)

T_co = TypeVar("T_co", covariant=True)


class Respond(Protocol[T_co]):
    """Makes a whole prediction by one model and returns it in one of the forms; see `predict_whole`.

    With `names_model` the response says in `model_id` which model it is of.
    """

    def __call__(
        self,
        model: CompiledModel,
        predict_input: PredictInput,
        fetch: Fetch,
        scripts: PainlessRunner,
        checks: GuardrailChecks,
        *,
        names_model: bool,
    ) -> Awaitable[T_co]:
        """Return the response."""
        ...


async def as_object(
    model: CompiledModel,
    predict_input: PredictInput,
    fetch: Fetch,
    scripts: PainlessRunner,
    checks: GuardrailChecks,
    *,
    names_model: bool,
) -> dict[str, Any]:
    """Respond with the object of the API, `{"inference_results": [...]}`."""
    response = await predict_whole(model, predict_input, fetch, scripts, checks)
    if names_model:
        response = {**response, "model_id": model.model_id}
    warnings = _warnings(model, predict_input)
    return {**response, "warnings": list(warnings)} if warnings else response


async def as_json(
    model: CompiledModel,
    predict_input: PredictInput,
    fetch: Fetch,
    scripts: PainlessRunner,
    checks: GuardrailChecks,
    *,
    names_model: bool,
) -> bytes:
    """Respond with the object of the API as compact JSON."""
    if names_model or _warnings(model, predict_input):
        return to_json(await as_object(model, predict_input, fetch, scripts, checks, names_model=names_model))
    return await predict_whole_encoded(model, predict_input, fetch, scripts, checks)


async def as_answer(
    request: ClientRequest,
    model: CompiledModel,
    predict_input: PredictInput,
    fetch: Fetch,
    scripts: PainlessRunner,
    checks: GuardrailChecks,
    *,
    names_model: bool,
) -> WholeAnswer:
    """Respond with the next answer in a client's conversation, which stands in for the input."""
    [body] = await fetch_checked(model, [whole_request(request, model)], fetch, checks, request)
    return read_answer(body, request, model, names_model=names_model)


def _warnings(model: CompiledModel, predict_input: PredictInput) -> Sequence[str]:
    action_type = predict_input.action_type if isinstance(predict_input, RemoteInput) else None
    return model.warnings(predict_input.parameters, action_type)
