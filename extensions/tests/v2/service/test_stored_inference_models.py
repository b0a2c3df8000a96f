"""Inferences of V2 over the predictions: what is sent, what comes back, what is refused."""

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, to_chunk_list
from opensearch_ml_stream.connectors.errors import Forbidden, InvalidRequest, NotFound, UpstreamError
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.extensions.v2.http.use_cases import InferenceModels, UnreadRequest
from opensearch_ml_stream.extensions.v2.protocol.messages import InferenceRequest, ResponseShape, Tensor
from opensearch_ml_stream.extensions.v2.service.stored_inference_models import (
    MAX_BYTES_AT_ONCE,
    ReadingThread,
    StoredInferenceModels,
)
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.plugin.store import Index
from opensearch_ml_stream.rest_handlers.callers import ANYONE
from tests.predictions.prediction_setup import EMBEDDING_URL, connector_body
from tests.predictions.scripted_provider import Response, ScriptedProvider, json_response, openai_stream
from tests.v2.service.inference_setup import InferenceSetup, asks, inference_setup, unread

EMBEDDING = connector_body(
    EMBEDDING_URL,
    action={
        "request_body": '{"input": ${parameters.input}}',
        "pre_process_function": "connector.pre_process.openai.embedding",
        "post_process_function": "connector.post_process.openai.embedding",
    },
)
NOT_YET_DEPLOYED = "the first prediction deploys it"
NO_AUTO_DEPLOY: dict[str, Any] = {"deploy_setting": {"is_auto_deploy_enabled": False}}


def respond(request: ProviderRequest) -> Response:
    """Streams, makes embeddings, or repeats, as the request asks."""
    body = orjson.loads(request.body)
    if request.url == EMBEDDING_URL:
        return json_response({"data": [{"embedding": [len(text), 0.5]} for text in body["input"]]})
    if body.get("stream"):
        return openai_stream("What", " is")
    choice = {"message": {"content": f"{body['input']}!"}, "finish_reason": "stop"}
    return json_response({"choices": [choice], "usage": {"prompt_tokens": 1, "completion_tokens": 2}})


@pytest.fixture
def provider() -> ScriptedProvider:
    return ScriptedProvider(respond)


@pytest.fixture
async def setup(provider: ScriptedProvider, tmp_path: Path) -> AsyncIterator[InferenceSetup]:
    async with inference_setup(tmp_path, provider) as setup:
        yield setup


@pytest.fixture
def models(setup: InferenceSetup) -> StoredInferenceModels:
    return setup.inference_models


async def inferred(models: InferenceModels, request: UnreadRequest, name: str = "m") -> Any:
    return await models.infer(await models.prepare(ANYONE, name, None, request))


async def states(models: InferenceModels, *, ready: bool = False) -> dict[str, tuple[str, str]]:
    return {entry["name"]: (entry["state"], entry["reason"]) for entry in await models.index(ANYONE, ready=ready)}


async def test_a_text_is_predicted_whole(models: InferenceModels, setup: InferenceSetup) -> None:
    await setup.register()
    response = await inferred(models, asks("Hi", id="7", output="answer"))
    assert response.shape == ResponseShape("m", "1", "7", "answer")
    assert [(tensor.name, tensor.data) for tensor in response.outputs] == [("answer", ["Hi!"])]
    assert response.parameters["finish_reason"] == "stop"
    assert response.parameters["usage"]["total_tokens"] == 3


async def test_a_response_without_an_id_of_the_client_gets_one_of_its_own(
    models: InferenceModels, setup: InferenceSetup
) -> None:
    model_id = await setup.register()
    shapes = [(await models.prepare(ANYONE, model_id, "v1", asks("Hi"))).shape for _ in range(2)]
    assert [(shape.model_name, shape.model_version) for shape in shapes] == [(model_id, "v1")] * 2
    assert shapes[0].id != shapes[1].id != ""


async def test_several_texts_are_predicted_in_parallel_and_come_in_order(
    models: InferenceModels, setup: InferenceSetup, provider: ScriptedProvider
) -> None:
    await setup.register()
    texts = [str(number) for number in range(20)]
    response = await inferred(models, asks(*texts))
    assert response.outputs[0].data == [f"{text}!" for text in texts]
    assert response.outputs[0].shape == [20, 1]
    assert 1 < provider.most_open <= 8


async def test_a_connector_may_allow_fewer_calls_at_a_time(
    models: InferenceModels, setup: InferenceSetup, provider: ScriptedProvider
) -> None:
    await setup.register(connector=connector_body(client_config={"max_connection": 2}))
    await inferred(models, asks("a", "b", "c", "d"))
    assert provider.most_open == 2


async def test_embeddings_are_a_tensor_of_floats(
    models: InferenceModels, setup: InferenceSetup, provider: ScriptedProvider
) -> None:
    await setup.register(connector=EMBEDDING)
    (tensor,) = (await inferred(models, asks("a", "abc"))).outputs
    assert (tensor.datatype, tensor.shape, tensor.data) == ("FP32", [2, 2], [1, 0.5, 3, 0.5])
    assert provider.bodies == [{"input": ["a", "abc"]}]


TITAN = connector_body(
    EMBEDDING_URL,
    action={
        "request_body": '{"inputText": "${parameters.inputText}"}',
        "pre_process_function": "connector.pre_process.bedrock.embedding",
        "post_process_function": "connector.post_process.bedrock.embedding",
    },
)
PLAIN = connector_body(EMBEDDING_URL, action={"request_body": '{"inputText": "${parameters.inputText}"}'})
LISTED = connector_body(
    EMBEDDING_URL,
    action={
        "request_body": '{"inputs": ${parameters.inputs}}',
        "post_process_function": "connector.post_process.default.embedding",
    },
)


def as_tensor(name: str, *texts: str) -> UnreadRequest:
    return unread(InferenceRequest([Tensor(name, "BYTES", [len(texts), 1], texts)]))


@pytest.mark.parametrize("name", ["inputText", "text", "mine"])
async def test_each_text_of_a_provider_that_takes_one_has_its_row(
    name: str, models: InferenceModels, setup: InferenceSetup, provider: ScriptedProvider
) -> None:
    provider.script = lambda request: json_response({"embedding": [len(orjson.loads(request.body)["inputText"])]})
    await setup.register(connector=TITAN)
    for texts in (["a"], ["a", "[1]", "abcd"]):
        (tensor,) = (await inferred(models, as_tensor(name, *texts))).outputs
        assert (tensor.datatype, tensor.shape, tensor.data) == ("FP32", [len(texts), 1], [len(one) for one in texts])


async def test_without_a_function_each_text_has_its_response_too(
    models: InferenceModels, setup: InferenceSetup, provider: ScriptedProvider
) -> None:
    provider.script = lambda request: json_response({"said": orjson.loads(request.body)["inputText"]})
    await setup.register(connector=PLAIN)
    (shown,) = (await models.metadata(ANYONE, "m", None))["inputs"]
    (tensor,) = (await inferred(models, as_tensor(shown["name"], "a", "b"))).outputs
    assert (tensor.shape, tensor.data) == ([2, 1], ['{"said":"a"}', '{"said":"b"}'])


@pytest.mark.parametrize("name", ["inputs", "mine"])
async def test_a_provider_that_takes_a_list_gets_one_of_any_length(
    name: str, models: InferenceModels, setup: InferenceSetup, provider: ScriptedProvider
) -> None:
    provider.script = lambda request: json_response([[len(text)] for text in orjson.loads(request.body)["inputs"]])
    await setup.register(connector=LISTED)
    for texts in (["a"], ["a", "abc"]):
        (tensor,) = (await inferred(models, as_tensor(name, *texts))).outputs
        assert (tensor.shape, tensor.data) == ([len(texts), 1], [len(one) for one in texts])
    provider.script = lambda request: json_response([[1]])
    with pytest.raises(UpstreamError, match="to 2 texts has 1 embedding"):
        await inferred(models, as_tensor(name, "a", "abc"))


@pytest.mark.parametrize("name", ["input", "text"])
async def test_rows_stand_where_their_texts_stand(
    name: str, models: InferenceModels, setup: InferenceSetup, provider: ScriptedProvider
) -> None:
    rows = [{"index": 1, "embedding": [2]}, {"index": 0, "embedding": [1]}]
    provider.script = lambda request: json_response({"data": rows})
    await setup.register(connector=EMBEDDING)
    assert (await inferred(models, as_tensor(name, "a", "b"))).outputs[0].data == [1, 2]
    with pytest.raises(UpstreamError, match="to 1 text has 2 embeddings"):
        await inferred(models, as_tensor(name, "a"))


async def test_documents_are_ranked_with_a_score_for_each(
    models: InferenceModels, setup: InferenceSetup, provider: ScriptedProvider
) -> None:
    scores = [{"index": 1, "relevance_score": 0.9}, {"index": 0, "relevance_score": 0.1}]
    provider.script = lambda request: json_response({"results": scores})
    action = {
        "request_body": '{"query": "${parameters.query}", "documents": ${parameters.documents}, '
        '"top_n": ${parameters.top_n}}',
        "pre_process_function": "connector.pre_process.cohere.rerank",
        "post_process_function": "connector.post_process.cohere.rerank",
    }
    await setup.register(connector=connector_body(action=action))
    shown = [tensor["name"] for tensor in (await models.metadata(ANYONE, "m", None))["inputs"]]
    given = dict(zip(shown, (("q",), ("a", "b")), strict=True))
    request = InferenceRequest([Tensor(name, "BYTES", [len(texts)], texts) for name, texts in given.items()])
    (tensor,) = (await inferred(models, unread(request))).outputs
    assert (tensor.datatype, tensor.shape, tensor.data) == ("FP32", [2, 1], [0.1, 0.9])
    assert provider.bodies == [{"query": "q", "documents": ["a", "b"], "top_n": 2}]


async def test_a_text_is_streamed(models: InferenceModels, setup: InferenceSetup) -> None:
    await setup.register()
    inference = await models.prepare(ANYONE, "m", None, asks("Hi"))
    async with models.stream(inference) as stream:
        chunks = []
        while stream.outcome is None:
            chunks += to_chunk_list(await stream.read())
    assert chunks == [Chunk("What"), Chunk(" is")]
    assert isinstance(stream.outcome, Ending)


async def test_a_stream_takes_one_text(models: InferenceModels, setup: InferenceSetup) -> None:
    await setup.register()
    inference = await models.prepare(ANYONE, "m", None, asks("a", "b"))
    opening = models.stream(inference)
    with pytest.raises(InvalidRequest, match="the request has 2"):
        async with opening:
            pass


async def test_embeddings_are_not_streamed(models: InferenceModels, setup: InferenceSetup) -> None:
    await setup.register(connector=EMBEDDING)
    inference = await models.prepare(ANYONE, "m", None, asks("a"))
    with pytest.raises(InvalidRequest, match="do not stream"):
        async with models.stream(inference):
            pass


async def test_tensors_that_the_model_cannot_take_are_refused_before_any_call(
    models: InferenceModels, setup: InferenceSetup, provider: ScriptedProvider
) -> None:
    await setup.register()
    with pytest.raises(InvalidRequest, match="It takes a text in a BYTES tensor"):
        await models.prepare(ANYONE, "m", None, unread(InferenceRequest([Tensor("x", "FP32", [1], [0.5])])))
    assert provider.calls == []


async def test_an_error_of_the_provider_is_that_of_the_inference(
    models: InferenceModels, setup: InferenceSetup, provider: ScriptedProvider
) -> None:
    provider.script = lambda request: Response([b"broken"], 500)
    await setup.register()
    with pytest.raises(UpstreamError, match="broken"):
        await inferred(models, asks("a", "b"))


async def test_the_settings_of_a_model_name_the_parameter_of_the_text(
    models: InferenceModels, setup: InferenceSetup, provider: ScriptedProvider
) -> None:
    connector = connector_body(action={"request_body": '{"input": "${parameters.my_param}"}'})
    await setup.register(connector=connector, _sidecar={"v2": {"prompt": "my_param"}})
    assert (await inferred(models, asks("Hi"))).outputs[0].data == ["Hi!"]
    assert (await models.metadata(ANYONE, "m", None))["inputs"][0]["name"] == "my_param"


async def test_metadata_says_what_a_model_takes_and_gives(models: InferenceModels, setup: InferenceSetup) -> None:
    await setup.register()
    model_id = await setup.register(description="d")
    assert await models.metadata(ANYONE, "m", None) == {
        "name": "m",
        "versions": ["2", "1"],
        "platform": "remote",
        "inputs": [{"name": "inputs", "datatype": "BYTES", "shape": [-1], "parameters": {"content_type": "str"}}],
        "outputs": [{"name": "output", "datatype": "BYTES", "shape": [-1], "parameters": {"content_type": "str"}}],
        "parameters": {"model_id": model_id, "description": "d"},
    }
    await setup.register("vectors", connector=EMBEDDING)
    assert (await models.metadata(ANYONE, "vectors", "1"))["outputs"][0]["datatype"] == "FP32"


async def test_metadata_of_a_stored_connector_deploys_nothing(models: InferenceModels, setup: InferenceSetup) -> None:
    await setup.predictions.add_connector(connector_body(action={"request_body": '{"a": "${parameters.a}"}'}))
    await setup.register(connector=None, connector_id="c")
    assert [one["name"] for one in (await models.metadata(ANYONE, "m", None))["inputs"]] == ["a"]
    assert (await states(models))["m"][1] == NOT_YET_DEPLOYED


async def test_the_index_shows_what_is_deployed(models: InferenceModels, setup: InferenceSetup) -> None:
    await setup.register("m")
    await setup.register("n", **NO_AUTO_DEPLOY)
    await setup.register("o", is_enabled=False)
    assert await states(models) == {
        "m": ("READY", NOT_YET_DEPLOYED),
        "n": ("UNAVAILABLE", "not deployed"),
        "o": ("UNAVAILABLE", "disabled"),
    }
    await models.load(ANYONE, "m")
    await models.load(ANYONE, "n")
    assert await states(models, ready=True) == {"m": ("READY", ""), "n": ("READY", "")}
    await models.unload(ANYONE, "m")
    assert await states(models, ready=True) == {"n": ("READY", "")}
    assert (await states(models))["m"] == ("UNAVAILABLE", "undeployed")


async def test_an_unloaded_model_is_not_there_until_it_is_loaded_or_ml_commons_api_deploys_it(
    models: InferenceModels, setup: InferenceSetup
) -> None:
    ids = [await setup.register("m") for _ in range(2)]
    await inferred(models, asks("Hi"))
    await models.unload(ANYONE, "m")
    for name in ("m", *ids):
        for call in (
            models.prepare(ANYONE, name, None, asks("a")),
            models.metadata(ANYONE, name, None),
            models.check_ready(ANYONE, name, None),
        ):
            with pytest.raises(NotFound, match=f"^Model {name} not found$"):
                await call
    await models.unload(ANYONE, "m")
    await models.load(ANYONE, "m")
    assert (await inferred(models, asks("Hi"))).shape.model_version == "2"
    await models.unload(ANYONE, "m")
    await setup.registry.models.deploy(ANYONE, ids[0], {})
    assert (await inferred(models, asks("Hi"))).shape.model_version == "1"


async def test_a_model_is_ready_if_a_prediction_would_work(models: InferenceModels, setup: InferenceSetup) -> None:
    await setup.register("m")
    await models.check_ready(ANYONE, "m", None)
    assert (await states(models))["m"] == ("READY", NOT_YET_DEPLOYED)
    await setup.register("n", **NO_AUTO_DEPLOY)
    with pytest.raises(InvalidRequest, match="please deploy"):
        await models.check_ready(ANYONE, "n", None)
    await models.load(ANYONE, "n")
    await models.check_ready(ANYONE, "n", "1")
    await setup.register("o", is_enabled=False)
    with pytest.raises(Forbidden, match="disabled"):
        await models.check_ready(ANYONE, "o", None)
    setup.predictions.live.current = Settings(remote_inference_enabled=False)
    with pytest.raises(InvalidRequest, match="Remote Inference"):
        await models.check_ready(ANYONE, "m", None)


async def test_a_model_that_is_not_there_is_not_found_in_mlservers_words(models: InferenceModels) -> None:
    for call in (
        models.prepare(ANYONE, "my-model", None, asks("a")),
        models.metadata(ANYONE, "my-model", None),
        models.check_ready(ANYONE, "my-model", None),
        models.load(ANYONE, "my-model"),
        models.unload(ANYONE, "my-model"),
    ):
        with pytest.raises(NotFound, match=r"^Model my-model not found$"):
            await call
    with pytest.raises(NotFound, match=r"^Model my-model with version v0 not found$"):
        await models.prepare(ANYONE, "my-model", "v0", asks("a"))


async def test_a_model_that_was_deleted_since_it_was_looked_up_is_not_found(
    models: InferenceModels, setup: InferenceSetup
) -> None:
    model_id = await setup.register()
    await models.check_ready(ANYONE, "m", None)
    await setup.predictions.store.delete(Index.MODEL, model_id)
    for _ in range(2):  # what was found before is forgotten
        with pytest.raises(NotFound, match=r"^Model m not found$"):
            await models.prepare(ANYONE, "m", None, asks("a"))


async def test_a_connector_that_was_deleted_is_named(models: InferenceModels, setup: InferenceSetup) -> None:
    await setup.predictions.add_connector(connector_body())
    await setup.register(connector=None, connector_id="c")
    await setup.predictions.store.delete(Index.CONNECTOR, "c")
    with pytest.raises(NotFound, match="connector"):
        await models.prepare(ANYONE, "m", None, asks("a"))


async def test_nothing_is_read_of_a_request_for_a_model_that_its_caller_may_not_use(
    models: InferenceModels, setup: InferenceSetup
) -> None:
    def read() -> InferenceRequest:
        raise AssertionError("read")

    await setup.register("disabled", is_enabled=False)
    for name, refused in (("disabled", Forbidden), ("nobodys", NotFound)):
        with pytest.raises(refused):
            await models.prepare(ANYONE, name, None, UnreadRequest(1, read))


async def test_small_requests_are_read_at_once_and_large_ones_in_a_thread() -> None:
    reading = ReadingThread()
    here = threading.get_ident()
    assert await reading.run(MAX_BYTES_AT_ONCE, threading.get_ident) == here
    assert await reading.run(MAX_BYTES_AT_ONCE + 1, threading.get_ident) != here


async def test_one_large_request_is_read_at_a_time_while_the_event_loop_turns() -> None:
    reading = ReadingThread()
    go_on = threading.Semaphore(0)
    reads: list[str] = []
    loop, has_begun = asyncio.get_running_loop(), asyncio.Event()

    def read() -> None:
        reads.append("begun")
        loop.call_soon_threadsafe(has_begun.set)
        go_on.acquire()
        reads.append("ended")

    both = asyncio.gather(*[reading.run(MAX_BYTES_AT_ONCE + 1, read) for _ in range(2)])
    await has_begun.wait()
    assert reads == ["begun"]
    go_on.release(2)
    await both
    assert reads == ["begun", "ended"] * 2
