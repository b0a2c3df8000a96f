"""A credential goes where its connector's author says: whatever way in, no request sends it to another server."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from integration_tests.server.grpc_port.ml_service.grpc_ports import Port, running_port
from integration_tests.support.background_provider import background_provider
from integration_tests.support.fake_provider import FakeProvider, Request, Script, json_response, openai_stream

from opensearch_ml_stream.extensions.v2.grpc import inference_messages as messages

BASE = "/_plugins/_ml"
SECRET = "sk-secret-1234567890"
NAME = "redirected"
ACTION = {
    "method": "POST",
    "headers": {"Authorization": "Bearer ${credential.key}"},
    "request_body": '{"messages": [{"role": "user", "content": "${parameters.inputs}"}]}',
}


@dataclass(frozen=True)
class Servers:
    """A sidecar, the provider of its model, and another server on loopback, which is as trusted."""

    port: Port
    model_id: str
    provider: FakeProvider
    other: FakeProvider

    def post(self, path: str, body: dict[str, Any]) -> httpx.Response:
        return self.port.sidecar.client.post(path, json=body)


def respond(request: Request) -> Script:
    if b'"stream":true' in request.body.replace(b" ", b""):
        return openai_stream(["ok"])
    return json_response({"id": "job", "status": "running", "choices": [{"message": {"content": "ok"}}]})


def connector(parameters: dict[str, str], url: str, *actions: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": "c",
        "version": "1",
        "protocol": "http",
        "parameters": parameters,
        "credential": {"key": SECRET},
        "actions": [{**ACTION, "action_type": "predict", "url": url}, *actions],
    }


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    settings = {"opensearch_ml_stream.generate_stream_model": NAME}
    with (
        background_provider(respond) as provider,
        background_provider(respond) as other,
        running_port(Path(tmp_path_factory.mktemp("port")), settings=settings) as port,
    ):
        batch = {**ACTION, "action_type": "batch_predict", "url": "${parameters.endpoint}/v1/batches"}
        body = connector({"endpoint": provider.url}, "${parameters.endpoint}/v1/chat/completions", batch)
        yield Servers(port, port.sidecar.create_model(body, name=NAME), provider, other)


def tensors(texts: dict[str, str]) -> list[dict[str, Any]]:
    return [{"name": name, "shape": [1], "datatype": "BYTES", "data": [text]} for name, text in texts.items()]


def post(path: str, body: Callable[[dict[str, str]], dict[str, Any]]) -> Callable[[Servers, dict[str, str]], str]:
    """A way in by POST; returns the status and what was responded."""

    def call(servers: Servers, parameters: dict[str, str]) -> str:
        response = servers.post(path.replace("MODEL", servers.model_id), body(parameters))
        return f"{response.status_code} {response.text}"

    return call


def get_generate_stream(servers: Servers, parameters: dict[str, str]) -> str:
    query = {"prompt": parameters["inputs"], **{name: text for name, text in parameters.items() if name != "inputs"}}
    response = servers.port.sidecar.client.get("/generate-stream", params=query)
    return f"{response.status_code} {response.text}"


def grpc_status(call: Callable[[], object]) -> str:
    try:
        return f"200 {call()}"
    except grpc.RpcError as error:
        assert isinstance(error, grpc.Call)
        assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
        return f"400 {error.details()}"


def grpc_request(servers: Servers, parameters: dict[str, str]) -> Any:
    request = messages.ModelInferRequest(model_name=servers.model_id)
    for name, text in parameters.items():
        if name == "inputs":
            request.inputs.add(name=name, datatype="BYTES", shape=[1]).contents.bytes_contents.append(text.encode())
        else:
            request.parameters[name].string_param = text
    return request


def grpc_infer(servers: Servers, parameters: dict[str, str]) -> str:
    with grpc.insecure_channel(servers.port.target) as channel:
        method = channel.unary_unary(
            f"/{messages.INFERENCE_SERVICE}/ModelInfer",
            messages.ModelInferRequest.SerializeToString,
            messages.message_class("inference.ModelInferResponse").FromString,
        )
        return grpc_status(lambda: method(grpc_request(servers, parameters)))


def grpc_stream(servers: Servers, parameters: dict[str, str]) -> str:
    with grpc.insecure_channel(servers.port.target) as channel:
        method = channel.stream_stream(
            f"/{messages.INFERENCE_SERVICE}/ModelStreamInfer",
            messages.ModelInferRequest.SerializeToString,
            messages.ModelInferResponse.FromString,
        )
        return grpc_status(lambda: list(method(iter([grpc_request(servers, parameters)]))))


def diagnose(servers: Servers, parameters: dict[str, str]) -> str:
    """A report is 200; one of a failure names it."""
    report = servers.post(f"{BASE}/models/{servers.model_id}/_diagnose", {"parameters": parameters}).json()
    return "200" if report["works"] else f"400 {json.dumps(report)}"


WAYS: dict[str, Callable[[Servers, dict[str, str]], str]] = {
    "_predict": post(f"{BASE}/models/MODEL/_predict", lambda given: {"parameters": given}),
    "_predict/remote": post(f"{BASE}/_predict/remote/MODEL", lambda given: {"parameters": given}),
    "_predict/stream": post(f"{BASE}/models/MODEL/_predict/stream", lambda given: {"parameters": given}),
    "_batch_predict": post(f"{BASE}/models/MODEL/_batch_predict", lambda given: {"parameters": given}),
    "_diagnose": diagnose,
    "V2 parameters": post(
        "/v2/models/MODEL/infer",
        lambda given: {"inputs": tensors({"inputs": given["inputs"]}), "parameters": {**given, "inputs": None}},
    ),
    "V2 llm_parameters": post(
        "/v2/models/MODEL/infer",
        lambda given: {
            "inputs": tensors({"inputs": given["inputs"]}),
            "parameters": {"llm_parameters": {name: text for name, text in given.items() if name != "inputs"}},
        },
    ),
    "V2 stream": post(
        "/v2/models/MODEL/infer_stream",
        lambda given: {"inputs": tensors({"inputs": given["inputs"]}), "parameters": {**given, "inputs": None}},
    ),
    "V2 generate": post(
        "/v2/models/MODEL/generate",
        lambda given: {"text_input": given["inputs"], "parameters": {**given, "inputs": None}},
    ),
    "V2 generate_stream": post(
        "/v2/models/MODEL/generate_stream",
        lambda given: {"text_input": given["inputs"], "parameters": {**given, "inputs": None}},
    ),
    "V2 gRPC": grpc_infer,
    "V2 gRPC stream": grpc_stream,
    "POST generate-stream": post("/generate-stream", lambda given: {**given, "prompt": given["inputs"]}),
    "GET generate-stream": get_generate_stream,
}


@pytest.mark.parametrize("way", WAYS)
def test_no_way_in_sends_the_credential_to_another_server(servers: Servers, way: str) -> None:
    before = len(servers.provider.requests)
    for elsewhere in (servers.other.url, f"{servers.provider.url}@{servers.other.url.partition('//')[2]}"):
        refused = WAYS[way](servers, {"inputs": "hi", "endpoint": elsewhere})
        assert refused.startswith("400 ")
        assert "may not set [endpoint]" in refused
        assert SECRET not in refused
    assert (len(servers.provider.requests), servers.other.requests) == (before, [])
    assert WAYS[way](servers, {"inputs": "hi"}).startswith("200")
    assert servers.provider.requests[-1].headers["authorization"] == f"Bearer {SECRET}"


def test_the_few_parameters_of_ml_service_send_it_nowhere_else(servers: Servers) -> None:
    body = connector({"question": servers.provider.url}, "${parameters.question}/v1/chat/completions")
    model_id = servers.port.sidecar.create_model(body)
    streamed = servers.port.client.predict(model_id, {"inputs": "hi", "question": servers.other.url})
    assert streamed.status is grpc.StatusCode.INVALID_ARGUMENT
    assert "may not set [question]" in streamed.details
    assert servers.other.requests == []
    assert servers.port.client.predict(model_id, {"inputs": "hi"}).text == "ok"


def test_no_tensor_sends_it_to_another_port(servers: Servers) -> None:
    own, elsewhere = (int(one.url.rpartition(":")[2]) for one in (servers.provider, servers.other))
    body = connector({"port": str(own)}, "http://127.0.0.1:${parameters.port}/v1/chat/completions")
    model_id = servers.port.sidecar.create_model(body)
    for port, status in ((elsewhere, 400), (own, 200)):
        tensor = {"name": "port", "shape": [1], "datatype": "INT32", "data": [port]}
        inputs = [*tensors({"inputs": "hi"}), tensor]
        assert servers.post(f"/v2/models/{model_id}/infer", {"inputs": inputs}).status_code == status
    assert servers.other.requests == []


def test_a_job_is_asked_for_where_it_was_made_whatever_its_description_says(servers: Servers) -> None:
    def describe(request: Request) -> Script:
        return json_response({"id": "job", "endpoint": servers.other.url})

    with background_provider(describe) as provider:
        job = "${parameters.endpoint}/jobs/${parameters.id}"
        actions: list[dict[str, Any]] = [
            {**ACTION, "action_type": "batch_predict", "url": "${parameters.endpoint}/jobs"},
            {"action_type": "batch_predict_status", "method": "GET", "url": job},
            {"action_type": "cancel_batch_predict", "method": "POST", "url": f"{job}/cancel"},
        ]
        body = connector({"endpoint": provider.url}, "${parameters.endpoint}/v1/chat/completions", *actions)
        model_id = servers.port.sidecar.create_model(body)
        created = servers.port.sidecar.post(f"/models/{model_id}/_batch_predict", {"parameters": {"inputs": "hi"}})
        task = f"{BASE}/tasks/{created['task_id']}"
        assert servers.port.sidecar.client.get(task).status_code == 200
        assert servers.port.sidecar.client.post(f"{task}/_cancel").status_code == 200
    assert [request.path for request in provider.requests] == ["/jobs", "/jobs/job", "/jobs/job/cancel"]
    assert servers.other.requests == []
