"""Inferences of a runtime over V2: it gets the request as it was written, and its responses come as they are."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from opensearch_ml_stream.connectors.chunks import Chunk, Chunks, Ending, ResponseRun, to_chunk_list
from opensearch_ml_stream.connectors.errors import InvalidRequest, NotFound, Unavailable, UpstreamError
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.extensions.runtimes.protocol.runtime_urls import runtime_url
from opensearch_ml_stream.extensions.runtimes.service.status import (
    STATUS_FILE,
    ModelStatus,
    ProcessStatus,
    write_status,
)
from opensearch_ml_stream.extensions.v2.protocol.json_requests import read_request
from opensearch_ml_stream.extensions.v2.protocol.local_responses import LocalResponse
from opensearch_ml_stream.extensions.v2.protocol.messages import InferenceResponse
from opensearch_ml_stream.plugin.store import Index
from opensearch_ml_stream.rest_handlers.callers import ANYONE
from opensearch_ml_stream.runtimes.frames import Kind
from tests.predictions.prediction_setup import connector_body
from tests.predictions.scripted_provider import Response, ScriptedProvider, json_response, openai_stream
from tests.runtimes.calls.scripted_host import ScriptedHost, opened_protocol
from tests.v2.service.inference_setup import InferenceSetup, inference_setup, unread

ID = "runtime-echo-v2"
BODY = {
    "id": "7",
    "inputs": [{"name": "x", "shape": [2, 1], "datatype": "BYTES", "data": [["a"], ["b"]]}],
    "parameters": {"k": {"l": 1}},
}
TEXT = {"name": "text", "shape": [1, 1], "datatype": "BYTES", "data": [["Hi"]]}
SCORE = {"name": "score", "shape": [1], "datatype": "FP32", "data": [0.5]}
OWN = {
    "model_name": "own",
    "model_version": "v2",
    "id": "7",
    "parameters": {"headers": {"x-a": "b"}},
    "outputs": [TEXT],
}
METADATA = [{"name": "x", "datatype": "BYTES", "shape": [-1]}]


def respond(request: ProviderRequest) -> Response:
    body = orjson.loads(request.body)
    if body.get("stream"):
        return openai_stream("remote says ", body["input"])
    return json_response({"choices": [{"message": {"content": f"remote says {body['input']}"}}]})


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[ScriptedHost]:
    (tmp_path / "runtimes").mkdir()
    async with ScriptedHost(tmp_path / "1.0.sock") as opened:
        put_status(tmp_path, ModelStatus(processes=[ProcessStatus(str(opened.path), ready=True)]))
        yield opened


def put_status(folder: Path, status: ModelStatus, state: Any = "READY") -> None:
    status.state, status.version, status.platform, status.inputs = state, "v2", "tests", METADATA
    write_status(folder / "runtimes" / STATUS_FILE, {"echo": status})


@pytest.fixture
async def setup(tmp_path: Path, host: ScriptedHost) -> AsyncIterator[InferenceSetup]:
    async with (
        opened_protocol(tmp_path / "runtimes") as protocol,
        inference_setup(tmp_path, ScriptedProvider(respond), protocols=[protocol]) as setup,
    ):
        await add_runtime(setup)
        yield setup


async def add_runtime(setup: InferenceSetup, id: str = ID, **fields: Any) -> None:
    """Store the model of a runtime as the keeper does."""
    action = {"action_type": "PREDICT", "method": "POST", "url": runtime_url("echo"), "request_body": "{}"}
    connector = {"name": "runtime echo", "version": "1", "protocol": "http", "parameters": {}, "actions": [action]}
    model = {"name": "echo", "algorithm": "REMOTE", "model_version": "2", "connector": connector, **fields}
    await setup.predictions.store.create(Index.MODEL, model, id)


async def put_fallback(setup: InferenceSetup, of: str, id: str) -> None:
    await setup.predictions.store.put(Index.MODEL_SETTINGS, of, {"settings": {"fallback_model_ids": [id]}})


async def while_answering(
    host: ScriptedHost, work: Any, *replies: tuple[Kind, bytes], sent: Callable[[Any], None] = lambda _: None
) -> Any:
    """What `work` returns while the host replies to its call; `sent` is shown the request."""
    task = asyncio.ensure_future(work)
    call = await host.next_call()
    sent(orjson.loads(call.payload))
    call.reply(*replies, (Kind.END, b""))
    return await task


async def inferred(setup: InferenceSetup, name: str = "echo", version: str | None = None, body: Any = None) -> Any:
    request, _ = read_request(orjson.dumps(body or BODY))
    models = setup.inference_models
    return await models.infer(await models.prepare(ANYONE, name, version, unread(request)))


async def streamed(setup: InferenceSetup, name: str = "echo") -> tuple[list[Chunks], Any]:
    request, _ = read_request(orjson.dumps(BODY))
    reads = []
    models = setup.inference_models
    async with models.stream(await models.prepare(ANYONE, name, None, unread(request))) as stream:
        while stream.outcome is None:
            reads.append(await stream.read())
    return [read for read in reads if read], stream.outcome


def as_written(sent: Any) -> None:
    assert sent == BODY


@pytest.mark.parametrize(("name", "version"), [("echo", None), (ID, None), ("echo", "v2"), ("echo", "2")])
async def test_a_whole_inference_is_the_runtimes_own(
    setup: InferenceSetup, host: ScriptedHost, name: str, version: str | None
) -> None:
    work = inferred(setup, name, version)
    response = await while_answering(host, work, (Kind.DATA, orjson.dumps(OWN)), sent=as_written)
    assert isinstance(response, LocalResponse)
    assert (response.body, response.headers) == (OWN, {"x-a": "b"})


async def test_a_stream_is_the_runtimes_own(setup: InferenceSetup, host: ScriptedHost) -> None:
    one, two = orjson.dumps({**OWN, "parameters": {}}), orjson.dumps({**OWN, "parameters": {"finish_reason": "length"}})
    reads, outcome = await while_answering(host, streamed(setup), (Kind.DATA, one), (Kind.DATA, two), sent=as_written)
    assert reads == [ResponseRun(one + b"\0" + two)]
    assert outcome == Ending("length", "length", model="own")


async def test_a_stream_without_any_response_is_a_good_one(setup: InferenceSetup, host: ScriptedHost) -> None:
    assert await while_answering(host, streamed(setup)) == ([], Ending())


async def test_a_request_without_an_id_gets_one_that_its_responses_have(
    setup: InferenceSetup, host: ScriptedHost
) -> None:
    ids = []
    body = {"inputs": BODY["inputs"]}
    work = inferred(setup, body=body)
    nameless = orjson.dumps({"outputs": [TEXT]})
    response = await while_answering(host, work, (Kind.DATA, nameless), sent=lambda sent: ids.append(sent["id"]))
    assert [response.shape.id] == ids != [""]


async def test_a_model_of_another_id_is_no_runtime_whatever_its_url(setup: InferenceSetup) -> None:
    await add_runtime(setup, "mine")
    with pytest.raises(InvalidRequest):
        await inferred(
            setup, "mine", body={"inputs": [{"name": "a", "shape": [1], "datatype": "BYTES", "data": ["b"]}]}
        )


async def test_text_behind_a_guardrail_keeps_the_other_outputs_with_it(
    setup: InferenceSetup, host: ScriptedHost
) -> None:
    guardrails = {"output_guardrail": {"regex": [".*bomb.*"]}}
    await add_runtime(setup, "runtime-guarded", guardrails=guardrails)
    sent = orjson.dumps({**OWN, "outputs": [{**TEXT, "data": ["all is well"]}, SCORE]})
    reads, outcome = await while_answering(host, streamed(setup, "runtime-guarded"), (Kind.DATA, sent))
    chunks = [chunk for read in reads for chunk in to_chunk_list(read)]
    assert ("".join(chunk.text for chunk in chunks), chunks[-1].outputs) == ("all is well", (SCORE,))
    assert isinstance(outcome, Ending)
    assert outcome.finish_reason == "stop"


@pytest.mark.parametrize("place", [0, 1])
async def test_no_output_passes_a_guardrail_unread(setup: InferenceSetup, host: ScriptedHost, place: int) -> None:
    guardrails = {"output_guardrail": {"regex": [".*bomb.*"]}}
    await add_runtime(setup, "runtime-guarded", guardrails=guardrails)
    outputs: list[dict[str, Any]] = [{**TEXT, "data": ["well"]}, {**TEXT, "name": "other", "data": [["well"]]}, SCORE]
    outputs[place]["data"] = [["a bomb"]]
    work = streamed(setup, "runtime-guarded")
    reads, outcome = await while_answering(host, work, (Kind.DATA, orjson.dumps({**OWN, "outputs": outputs})))
    assert reads == []
    assert isinstance(outcome, Ending)
    assert outcome.finish_reason == "content_filter"


@pytest.mark.parametrize("data", ["a bomb", "YSBib21i"])
async def test_an_input_guardrail_reads_a_request_also_in_base64(setup: InferenceSetup, data: str) -> None:
    await add_runtime(setup, "runtime-guarded", guardrails={"input_guardrail": {"regex": [".*bomb.*"]}})
    tensor = {"name": "x", "shape": [1], "datatype": "BYTES", "data": [data], "parameters": {"content_type": "base64"}}
    with pytest.raises(InvalidRequest, match="guardrails triggered for user input"):
        await inferred(setup, "runtime-guarded", body={"inputs": [tensor]})


async def test_a_remote_model_answers_for_a_runtime_that_fails(setup: InferenceSetup, tmp_path: Path) -> None:
    await setup.predictions.add_model(connector_body(), "remote")
    await put_fallback(setup, ID, "remote")
    put_status(tmp_path, ModelStatus(reason="no memory"), "FAILED")
    body = {"inputs": [{"name": "x", "shape": [1], "datatype": "BYTES", "data": ["Hi"]}]}
    response = await inferred(setup, body=body)
    assert isinstance(response, InferenceResponse)
    assert (response.outputs[0].data, response.parameters["model_id"]) == (["remote says Hi"], "remote")


async def test_a_runtime_answers_for_a_remote_model_that_fails(setup: InferenceSetup, host: ScriptedHost) -> None:
    setup.predictions.provider.script = lambda request: json_response({"error": "overloaded"}, 503)
    await setup.predictions.add_model(connector_body(), "remote")
    await put_fallback(setup, "remote", ID)
    sent: list[Any] = []

    async def chunks() -> list[Chunk]:
        async with setup.predictions.predictor.stream(ANYONE, "remote", {"inputs": "Hi"}) as stream:
            return to_chunk_list(await stream.read())

    assert await while_answering(host, chunks(), (Kind.DATA, orjson.dumps(OWN)), sent=sent.append) == [Chunk("Hi")]
    assert sent[0]["inputs"][0]["data"] == ["Hi"]


async def test_the_metadata_is_what_the_runtime_has_told(setup: InferenceSetup) -> None:
    assert await setup.inference_models.metadata(ANYONE, "echo", None) == {
        "name": "echo",
        "versions": ["v2"],
        "platform": "tests",
        "inputs": METADATA,
        "outputs": [],
        "parameters": {"model_id": ID},
    }


async def test_versions_that_the_models_file_names_are_those_of_its_metadata(
    setup: InferenceSetup, tmp_path: Path
) -> None:
    put_status(tmp_path, ModelStatus(versions=["echo/v2", "echo/v1"]))
    assert (await setup.inference_models.metadata(ANYONE, "echo", None))["versions"] == ["echo/v2", "echo/v1"]


async def states(setup: InferenceSetup) -> list[tuple[str, str, str]]:
    entries = await setup.inference_models.index(ANYONE, ready=False)
    return [(entry["version"], entry["state"], entry["reason"]) for entry in entries]


async def test_a_runtime_is_ready_once_a_process_of_it_is(setup: InferenceSetup, tmp_path: Path) -> None:
    models = setup.inference_models
    await models.check_ready(ANYONE, "echo", None)
    assert await states(setup) == [("v2", "READY", "")]
    put_status(tmp_path, ModelStatus(), "LOADING")
    with pytest.raises(Unavailable):
        await models.check_ready(ANYONE, "echo", None)
    assert await states(setup) == [("v2", "LOADING", "")]
    put_status(tmp_path, ModelStatus(reason="no module"), "FAILED")
    with pytest.raises(UpstreamError, match="no module"):
        await models.check_ready(ANYONE, "echo", None)
    assert await states(setup) == [("v2", "UNAVAILABLE", "no module")]
    (tmp_path / "runtimes" / STATUS_FILE).unlink()
    with pytest.raises(NotFound):
        await models.check_ready(ANYONE, "echo", None)
    assert await states(setup) == [("2", "UNAVAILABLE", "not on this server")]
