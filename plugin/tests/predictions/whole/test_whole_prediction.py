"""A whole prediction of several provider calls: results in order, and refusals before the first call."""

import asyncio
from collections.abc import Mapping
from typing import Any

import orjson
import pytest

from opensearch_ml_stream.connectors.documents import read_connector, read_model
from opensearch_ml_stream.connectors.errors import InvalidRequest, UpstreamError
from opensearch_ml_stream.connectors.predict.guardrails.configuration import (
    INPUT_TRIGGERED,
    OUTPUT_TRIGGERED,
    ModelGuard,
)
from opensearch_ml_stream.connectors.predict.inputs import (
    PredictInput,
    QuestionAnsweringInput,
    RemoteInput,
    TextDocsInput,
)
from opensearch_ml_stream.connectors.predict.pre_process import MAX_CALLS
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.plugin.predictions.compiled_model import CompiledModel
from opensearch_ml_stream.plugin.predictions.guardrail_checks import GuardrailChecks
from opensearch_ml_stream.plugin.predictions.painless_runner import PainlessRunner
from opensearch_ml_stream.plugin.predictions.whole_prediction import (
    MAX_PARALLEL_CALLS,
    MAX_REQUEST_BYTES,
    WholeCall,
    predict_whole,
)
from opensearch_ml_stream.plugin.store.sqlite_store import SQLiteStore
from tests.counted_work import steps
from tests.predictions.prediction_setup import EMBEDDING_URL, connector_body
from tests.registry.registry_setup import closing
from tests.scripted_protocol import OwnModel

EMBEDDING = {
    "request_body": '{"input": ${parameters.input}}',
    "pre_process_function": "connector.pre_process.openai.embedding",
    "post_process_function": "connector.post_process.openai.embedding",
}
TEXTS = ("one", "two", "three")


class ScriptingStore(SQLiteStore):
    """A store that runs any Painless to a canned result, as text of the script's params."""

    def __init__(self) -> None:
        super().__init__(":memory:")
        self.scripts: list[tuple[str, Mapping[str, Any]]] = []

    async def run_painless(self, source: str, params: Mapping[str, Any]) -> str | None:
        if "inputs" in params and "mlOne" in source:
            raise InvalidRequest("Painless script: not combined here")
        self.scripts.append((source, params))
        if source == "pre":
            return orjson.dumps({"parameters": {"inputs": params["text_docs"][0].upper()}}).decode()
        return orjson.dumps({"name": "scripted", "data": [params["length"]]}).decode()


class EmbeddingProvider:
    """Embeds each text as its length; slower for longer lists of requests before it."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.in_flight = 0
        self.most_in_flight = 0

    async def fetch(self, request: ProviderRequest) -> bytes:
        body = orjson.loads(request.body)
        self.requests.append(body)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        for _ in range(20 - len(self.requests)):
            await asyncio.sleep(0)
        self.in_flight -= 1
        if isinstance(body["input"], list):
            return orjson.dumps({"data": [{"embedding": [float(len(text))]} for text in body["input"]]})
        return orjson.dumps({"length": len(body["input"]), "said": body["input"]})


class ScriptedEmbeddings(EmbeddingProvider):
    """Responds to everything with the same rows."""

    def __init__(self, *rows: Mapping[str, Any]) -> None:
        super().__init__()
        self.rows = rows

    async def fetch(self, request: ProviderRequest) -> bytes:
        return orjson.dumps({"data": self.rows})


async def judge(guard: ModelGuard, text: str) -> Any:
    return "reject" if "bad" in text else "accept"


async def predict(
    given: PredictInput, provider: EmbeddingProvider, document: dict[str, Any] | None = None, **connector: Any
) -> list[Any]:
    """The outputs of a prediction."""
    stored = read_connector(connector_body(EMBEDDING_URL, **connector))
    model = CompiledModel("m", read_model(document or {}), stored, stored.credential)
    store = ScriptingStore()
    try:
        scripts, checks = PainlessRunner(store.run_painless), GuardrailChecks(store, judge)
        response = await predict_whole(WholeCall(model, given, provider.fetch, scripts, checks))
    finally:
        await store.close()
    assert [result["status_code"] for result in response["inference_results"]] == [200] * len(
        response["inference_results"]
    )
    return [result["output"] for result in response["inference_results"]]


def data(outputs: list[Any]) -> list[Any]:
    return [[tensor["data"] for tensor in output] for output in outputs]


async def test_texts_go_to_the_provider_in_one_call_if_nothing_says_otherwise() -> None:
    provider = EmbeddingProvider()
    assert data(await predict(TextDocsInput(TEXTS), provider, action=EMBEDDING)) == [[[3.0], [3.0], [5.0]]]
    assert provider.requests == [{"input": ["one", "two", "three"]}]


async def test_each_text_gets_its_own_embedding_or_nobody_gets_one() -> None:
    provider = ScriptedEmbeddings({"index": 1, "embedding": [2]}, {"index": 0, "embedding": [1]})
    assert data(await predict(TextDocsInput(("a", "b")), provider, action=EMBEDDING)) == [[[1], [2]]]
    with pytest.raises(UpstreamError, match="to 3 texts has 2 embeddings"):
        await predict(TextDocsInput(TEXTS), provider, action=EMBEDDING)
    one_a_call = {"input_docs_processed_step_size": "1"}
    with pytest.raises(UpstreamError, match="to 1 text has 2 embeddings"):
        await predict(TextDocsInput(("a", "b")), provider, action=EMBEDDING, parameters=one_a_call)


async def test_texts_that_need_too_many_calls_are_refused_before_the_first() -> None:
    provider = EmbeddingProvider()
    texts = TextDocsInput(("x",) * (MAX_CALLS + 1))
    parameters = {"input_docs_processed_step_size": "1"}
    with pytest.raises(InvalidRequest, match=f"1001 texts, 1 in a call, need more than {MAX_CALLS} calls"):
        await predict(texts, provider, action=EMBEDDING, parameters=parameters)
    with pytest.raises(InvalidRequest, match=f"have more than {MAX_REQUEST_BYTES} bytes"):
        long = {"model": "x" * (MAX_REQUEST_BYTES // 50)}
        action = {**EMBEDDING, "request_body": '{"input":${parameters.input},"model":"${parameters.model}"}'}
        await predict(TextDocsInput(("x",) * 60, long), provider, action=action, parameters=parameters)
    assert provider.requests == []


def test_the_checks_of_many_calls_by_an_interface_take_no_more_steps_than_one_may() -> None:
    rules = {"parameters": {"required": ["input"], "properties": {"input": {"items": {"allOf": [{}] * 400}}}}}
    document = {"interface": {"input": {"required": ["parameters"], "properties": rules}}}

    async def refused() -> None:
        with pytest.raises(InvalidRequest, match="required property 'parameters' not found"):
            await predict(
                TextDocsInput(("x",) * 1_000), EmbeddingProvider(), document, action=EMBEDDING,
                parameters={"input_docs_processed_step_size": "1"},
            )  # fmt: skip

    assert steps(lambda: asyncio.run(refused())) < 2_500_000  # 6,000,000 with a budget for each


async def test_several_calls_run_in_parallel_and_their_results_are_in_order() -> None:
    provider = EmbeddingProvider()
    sized = {"input_docs_processed_step_size": "1"}
    outputs = await predict(TextDocsInput(TEXTS), provider, action=EMBEDDING, parameters=sized)
    assert data(outputs) == [[[3.0]], [[3.0]], [[5.0]]]
    assert provider.most_in_flight == 3


@pytest.mark.parametrize(
    ("config", "most"), [({}, MAX_PARALLEL_CALLS), ({"max_connection": 2}, 2), ({"max_connection": 30}, 8)]
)
async def test_so_many_calls_are_in_flight_as_the_connector_allows_but_never_more_than_8(
    config: dict[str, Any], most: int
) -> None:
    provider = EmbeddingProvider()
    sized = {"input_docs_processed_step_size": "1"}
    texts = TextDocsInput(tuple("x" * size for size in range(1, 16)))
    outputs = await predict(texts, provider, action=EMBEDDING, parameters=sized, client_config=config)
    assert data(outputs) == [[[float(size)]] for size in range(1, 16)]
    assert provider.most_in_flight == most


async def test_a_response_that_cannot_be_read_fails_the_prediction() -> None:
    provider = EmbeddingProvider()
    other_path = {**EMBEDDING, "post_process_function": "connector.post_process.cohere.embedding"}
    with pytest.raises(UpstreamError, match=r"has nothing at \[\$\.embeddings\]"):
        await predict(TextDocsInput(TEXTS), provider, action=other_path)


@pytest.mark.parametrize(
    ("given", "action", "reason"),
    [
        (RemoteInput({}), {}, "inputs"),
        (
            TextDocsInput(TEXTS),
            {**EMBEDDING, "post_process_function": "connector.post_process.no"},
            "There is no built",
        ),
        (TextDocsInput(TEXTS), {**EMBEDDING, "pre_process_function": "connector.pre_process.no"}, "There is no built"),
        (QuestionAnsweringInput("q", "c"), {}, "pre_process_function not defined"),
    ],
)
async def test_what_cannot_work_is_refused_before_the_provider_is_called(
    given: PredictInput, action: dict[str, str], reason: str
) -> None:
    provider = EmbeddingProvider()
    with pytest.raises(InvalidRequest, match=reason):
        await predict(given, provider, action=action)
    assert provider.requests == []


async def test_an_input_guardrail_sees_every_call_before_the_first_is_made() -> None:
    provider = EmbeddingProvider()
    rails = {
        "guardrails": {"type": "model", "input_guardrail": {"model_id": "g", "response_validation_regex": "accept"}}
    }
    sized = {"input_docs_processed_step_size": "1"}
    with pytest.raises(InvalidRequest, match=rf"^{INPUT_TRIGGERED} by guard model \[g\]$"):
        await predict(TextDocsInput(("good", "bad")), provider, rails, action=EMBEDDING, parameters=sized)
    assert provider.requests == []
    outputs = await predict(TextDocsInput(("good", "fine")), provider, rails, action=EMBEDDING, parameters=sized)
    assert data(outputs) == [[[4.0]], [[4.0]]]


async def test_an_output_guardrail_sees_every_response() -> None:
    rails = {"guardrails": {"output_guardrail": {"regex": [".*bad.*"]}}}
    with pytest.raises(InvalidRequest, match=rf"^{OUTPUT_TRIGGERED} by regex\[0\]$"):
        await predict(RemoteInput({"inputs": "bad"}), EmbeddingProvider(), rails)
    [[tensor]] = await predict(RemoteInput({"inputs": "good"}), EmbeddingProvider(), rails)
    assert tensor["dataAsMap"] == {"length": 4, "said": "good"}


async def test_scripts_make_the_request_and_read_the_response() -> None:
    scripts = {"pre_process_function": "pre", "post_process_function": "post"}
    provider = EmbeddingProvider()
    outputs = await predict(TextDocsInput(("a", "bcd")), provider, action=scripts)
    assert provider.requests == [{"input": "A"}, {"input": "BCD"}]
    assert data(outputs) == [[[1]], [[3]]]


async def test_an_output_schema_holds_for_the_whole_response() -> None:
    rule = {"properties": {"inference_results": {"maxItems": 0}}}
    with pytest.raises(InvalidRequest, match=r"^Error validating output schema"):
        await predict(RemoteInput({"inputs": "x"}), EmbeddingProvider(), {"interface": {"output": rule}})


@pytest.mark.parametrize(
    ("schema", "allowed"),
    [
        ({"required": ["text_docs"]}, True),
        ({"properties": {"parameters": {"required": ["input"]}}, "required": ["parameters"]}, True),
        ({"properties": {"parameters": {"required": ["other"]}}, "required": ["parameters"]}, False),
    ],
)
async def test_an_input_schema_may_describe_texts_or_the_parameters_they_become(
    schema: dict[str, Any], allowed: bool
) -> None:
    provider = EmbeddingProvider()
    document = {"interface": {"input": schema}}
    if allowed:
        await predict(TextDocsInput(TEXTS), provider, document, action=EMBEDDING)
        return
    with pytest.raises(InvalidRequest, match=r"required property 'parameters' not found"):
        await predict(TextDocsInput(TEXTS), provider, document, action=EMBEDDING)
    assert provider.requests == []


async def test_an_input_schema_for_parameters_is_checked_before_anything_else() -> None:
    document = {"interface": {"input": {"properties": {"parameters": {"required": ["other"]}}}}}
    with pytest.raises(InvalidRequest, match="required property 'other' not found"):
        await predict(RemoteInput({"inputs": "x"}), EmbeddingProvider(), document, action=EMBEDDING)


def embedding_model(document: dict[str, Any] | None = None, own: OwnModel | None = None) -> CompiledModel:
    stored = read_connector(connector_body(EMBEDDING_URL))
    return CompiledModel("m", read_model(document or {}), stored, stored.credential, protocol=own)


def test_a_body_is_read_in_its_charset() -> None:
    request = ProviderRequest("POST", EMBEDDING_URL, {}, "bömb".encode("utf-16"), "utf_16")
    model = embedding_model()
    assert model.readable_text(request) == "bömb"
    assert model.readable_text(ProviderRequest("POST", EMBEDDING_URL, {}, "bömb".encode())) == "bömb"
    assert model.readable_text(ProviderRequest("POST", EMBEDDING_URL, {}, b"b\xff")) == "b\N{REPLACEMENT CHARACTER}"


async def test_the_protocol_of_a_model_makes_its_calls_and_tells_guardrails_their_text() -> None:
    sent = []

    async def fetch(request: ProviderRequest) -> bytes:
        sent.append(orjson.loads(request.body))
        return b"{}"

    async with closing(SQLiteStore(":memory:")) as store:
        checks, scripts = GuardrailChecks(store, judge), PainlessRunner(store.run_painless)
        stored = read_connector(connector_body(EMBEDDING_URL))
        given = TextDocsInput(TEXTS)
        await predict_whole(WholeCall(embedding_model(own=OwnModel(stored)), given, fetch, scripts, checks))
        assert sent == [{"input": "step of TextDocsInput"}]
        guardrails = {"guardrails": {"input_guardrail": {"regex": ["^readable .*"]}}}
        with pytest.raises(InvalidRequest, match="guardrails triggered for user input"):
            guarded = embedding_model(guardrails, OwnModel(stored))
            await predict_whole(WholeCall(guarded, given, fetch, scripts, checks))
        assert len(sent) == 1
