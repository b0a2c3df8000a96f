"""A runtime is called by every route as any model is: what it gets, and what its callers get of it."""

import json
from typing import Any

import pytest
from integration_tests.server.grpc_port.grpc_clients import (
    grpc_address,
    infer_request,
    inference_client,
    raw_request,
)
from integration_tests.server.runtimes.runtime_server import RuntimeServer
from integration_tests.support.sidecars import Sidecar

MODEL = "/_plugins/_ml/models/runtime-telling-v2"
V2 = "/v2/models/telling"
ENDING = {
    "finish_reason": "length",
    "native_finish_reason": "length",
    "usage": {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5},
    "model": "telling",
}


@pytest.fixture
def sidecar(server: RuntimeServer) -> Sidecar:
    return server.sidecar


def tensor(*texts: str) -> dict[str, Any]:
    return {"name": "prompt", "shape": [len(texts)], "datatype": "BYTES", "data": list(texts)}


def told(sidecar: Sidecar, path: str = f"{MODEL}/_predict", **body: Any) -> Any:
    """What the model was asked by a prediction, as it tells it."""
    response = sidecar.client.post(path, json=body)
    assert response.status_code == 200, response.text
    return json.loads(response.json()["inference_results"][0]["output"][0]["dataAsMap"]["outputs"][0]["data"][0])


def events(text: str) -> list[Any]:
    return [json.loads(event.removeprefix("data: ")) for event in text.split("\n\n") if event]


def test_a_prediction_asks_with_tensors_and_parameters(sidecar: Sidecar) -> None:
    asked = told(sidecar, parameters={"inputs": "Hi", "temperature": 0.5, "stop": ["a"]})
    assert (asked["asked"], asked["parameters"]["temperature"], asked["parameters"]["stop"]) == (
        {"inputs": ["Hi"]},
        0.5,
        ["a"],
    )
    messages = [{"role": "system", "content": "Be short"}, {"role": "user", "content": "Hi"}]
    chat = told(sidecar, parameters={"messages": messages})
    assert chat["asked"] == {"role": ["system", "user"], "content": ["Be short", "Hi"]}
    whole = {"inputs": [tensor("a", "b")], "parameters": {"k": 1}}
    passed = told(sidecar, parameters={"inference_request": whole})
    assert (passed["asked"], passed["parameters"]["k"]) == ({"prompt": ["a", "b"]}, 1)


@pytest.mark.parametrize("path", [f"{MODEL}/_predict", f"{MODEL.replace('models', '_predict/text_embedding')}"])
def test_texts_to_embed_are_one_tensor(sidecar: Sidecar, path: str) -> None:
    assert told(sidecar, path, text_docs=["a", "b"])["asked"] == {"text_docs": ["a", "b"]}


@pytest.mark.parametrize(("format", "key"), [("ndjson", "response"), ("sse", "content")])
def test_a_stream_has_text_and_other_outputs_beside_it(sidecar: Sidecar, format: str, key: str) -> None:
    path = f"{MODEL}/_predict/stream?format={format}"
    response = sidecar.client.post(path, json={"parameters": {"prompt": "one two"}})
    objects = events(response.text) if format == "sse" else [json.loads(line) for line in response.text.splitlines()]
    first, second, end = (one["inference_results"][0]["output"][0]["dataAsMap"] for one in objects)
    assert (first[key], second[key]) == ("one ", "two ")
    assert [one["outputs"][0]["data"] for one in (first, second)] == [[0], [1]]
    assert {name: end[name] for name in ENDING} == ENDING


def test_a_whole_inference_is_the_runtimes_own_with_its_headers(sidecar: Sidecar) -> None:
    body = {"id": "7", "inputs": [tensor("Hi")], "parameters": {"k": {"l": 1}}}
    headers = {"x-mine": "1", "authorization": "Bearer secret"}
    response = sidecar.client.post(f"{V2}/versions/v2/infer", json=body, headers=headers)
    own = response.json()
    assert (own["model_name"], own["model_version"], own["id"]) == ("telling", "v2", "7")
    assert [output["name"] for output in own["outputs"]] == ["told", "number"]
    asked = json.loads(own["outputs"][0]["data"][0])
    assert (asked["x-mine"], asked["parameters"]["k"]) == ("1", {"l": 1})
    assert "authorization" not in asked["seen"]
    assert response.headers["x-told-by"] == "telling"
    assert "headers" not in own.get("parameters", {})


def test_a_diagnosis_goes_over_no_network(sidecar: Sidecar) -> None:
    response = sidecar.client.post(f"{MODEL}/_diagnose", json={"parameters": {"inputs": "one two"}, "record": True})
    report = response.json()
    assert report["works"] is True, response.text
    assert [step["name"] for step in report["steps"] if step["verdict"] == "skipped"] == ["resolve", "connect", "tls"]
    assert report["recording"][-1]["end"] == "complete"


def test_a_stream_of_inferences_is_the_runtimes_own_to_its_end(sidecar: Sidecar) -> None:
    response = sidecar.client.post(f"{V2}/infer_stream", json={"id": "7", "inputs": [tensor("one two")]})
    first, second = events(response.text)
    assert [one["outputs"][0]["data"] for one in (first, second)] == [["one "], ["two "]]
    assert {one["id"] for one in (first, second)} == {"7"}
    assert second["parameters"]["finish_reason"] == "length"


def test_a_stream_without_any_response_is_a_good_one(sidecar: Sidecar) -> None:
    response = sidecar.client.post(f"{V2}/infer_stream", json={"inputs": [tensor("")]})
    assert (response.status_code, response.text) == (200, "")


def test_the_generate_extension_has_text(sidecar: Sidecar) -> None:
    streamed = sidecar.client.post(f"{V2}/generate_stream", json={"text_input": "one two"})
    assert [event["text_output"] for event in events(streamed.text)] == ["one ", "two ", ""]
    whole = sidecar.client.post(f"{V2}/generate", json={"text_input": "Hi"}).json()
    assert json.loads(whole["text_output"])["asked"] == {"text_input": ["Hi"]}


def test_the_metadata_and_the_index_are_the_runtimes(sidecar: Sidecar) -> None:
    metadata = sidecar.client.get(V2).json()
    assert (metadata["platform"], metadata["versions"]) == ("tests", ["v2"])
    assert metadata["inputs"] == [{"name": "prompt", "datatype": "BYTES", "shape": [1]}]
    index = sidecar.client.post("/v2/repository/index", json={}).json()
    assert {"name": "telling", "version": "v2", "state": "READY", "reason": ""} in index


@pytest.mark.parametrize("is_raw", [False, True])
async def test_inferences_over_grpc_are_the_runtimes_own(sidecar: Sidecar, is_raw: bool) -> None:
    request = (raw_request if is_raw else infer_request)("one two", "telling")
    request.id = "7"
    async with inference_client(grpc_address(sidecar)) as client:
        call = client.call("ModelInfer", request)
        whole = await call
        trailing = dict(await call.trailing_metadata())
        streamed = [one async for one in client.stream(request)]
    for response in (whole, *streamed):
        assert (response.model_name, response.model_version, response.id) == ("telling", "v2", "7")
        assert [output.name for output in response.outputs] == ["told", "number"]
    assert trailing["x-told-by"] == "telling"
    if is_raw:
        assert [one.raw_output_contents[0][4:] for one in streamed] == [b"one ", b"two "]
        assert [one.raw_output_contents[1] for one in streamed] == [bytes(8), b"\1" + bytes(7)]
    else:
        assert [one.outputs[0].contents.bytes_contents[0] for one in streamed] == [b"one ", b"two "]
        assert [list(one.outputs[1].contents.int64_contents) for one in streamed] == [[0], [1]]
    assert streamed[-1].parameters["finish_reason"].string_param == "length"
