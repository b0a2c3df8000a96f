"""A whole prediction as JSON: its embeddings cut out of the provider's response, or as `predict_whole` has them."""

from collections.abc import Awaitable
from typing import Any

import orjson
import pytest

from opensearch_ml_stream.connectors.documents import read_connector, read_model
from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.connectors.predict.inputs import PredictInput, RemoteInput, TextDocsInput
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.plugin.predictions.compiled_model import CompiledModel
from opensearch_ml_stream.plugin.predictions.guardrail_checks import GuardrailChecks
from opensearch_ml_stream.plugin.predictions.painless_runner import PainlessRunner
from opensearch_ml_stream.plugin.predictions.whole_prediction import WholeCall, predict_whole, predict_whole_encoded
from opensearch_ml_stream.plugin.store.sqlite_store import SQLiteStore
from tests.predictions.prediction_setup import EMBEDDING_URL, connector_body

_TEXTS = ("one", "two", "three")
_EMBEDDING = {
    "request_body": '{"input": ${parameters.input}}',
    "pre_process_function": "connector.pre_process.openai.embedding",
    "post_process_function": "connector.post_process.openai.embedding",
}


async def _outcome(prediction: Awaitable[Any]) -> Any:
    try:
        return await prediction
    except MLStreamError as error:
        return error.body()


def _model(interface: dict[str, str], step_size: str) -> CompiledModel:
    parameters = {"input_docs_processed_step_size": step_size}
    connector = read_connector(connector_body(EMBEDDING_URL, action=_EMBEDDING, parameters=parameters))
    return CompiledModel("m", read_model({"interface": interface}), connector, connector.credential)


async def _no_guard_model(guard: object, text: str) -> Any:
    raise AssertionError


@pytest.mark.parametrize(
    "predict_input",
    [
        TextDocsInput(_TEXTS),
        TextDocsInput(_TEXTS, {"response_filter": "$.data[0].embedding"}),
        TextDocsInput(_TEXTS, {"response_filter": "$.gone"}),
        TextDocsInput(("one", "lost", "three")),
        TextDocsInput(("one", "lost")),
        RemoteInput({"input": '["a", "b"]'}),
    ],
)
@pytest.mark.parametrize("output", ['{"required": ["inference_results"]}', '{"required": ["no"]}', ""])
@pytest.mark.parametrize("step_size", ["1", "2", "3"])
async def test_an_encoded_prediction_is_the_whole_one(predict_input: PredictInput, output: str, step_size: str) -> None:
    async def fetch(request: ProviderRequest) -> bytes:
        """Embed one text long, another one short, so that some responses are cut and others parsed; the last first."""
        texts = list(enumerate(orjson.loads(request.body)["input"]))
        vectors = {number: [0.5 + number] * (3 if text == "two" else 300) for number, text in texts if text != "lost"}
        return orjson.dumps({"data": [{"index": number, "embedding": vectors[number]} for number in reversed(vectors)]})

    store = SQLiteStore(":memory:")
    checks = GuardrailChecks(store, _no_guard_model)
    model = _model({"output": output}, step_size)
    call = WholeCall(model, predict_input, fetch, PainlessRunner(store.run_painless), checks)
    whole = await _outcome(predict_whole(call))
    encoded = await _outcome(predict_whole_encoded(call))
    await store.close()
    if "error" in whole:
        assert encoded == whole
    else:
        assert encoded == orjson.dumps(whole)
