"""What MLServer's own tests ask of a server from outside, with its types, codecs and stubs on every answer.

Sources: SeldonIO/MLServer, tests/rest/test_endpoints.py and tests/grpc/test_servicers.py. Prints the names of the
checks that hold, one a line, and ends with what is wrong with the others. Runs in MLServer's own environment.
"""

import gzip
import json
import sys
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import httpx
from httpx_sse import connect_sse
from mlserver import types
from mlserver.cloudevents import CLOUDEVENTS_HEADER_SPECVERSION, CLOUDEVENTS_HEADER_SPECVERSION_DEFAULT
from mlserver.codecs import StringCodec, StringRequestCodec
from mlserver.grpc import converters
from mlserver.grpc import dataplane_pb2 as pb
from mlserver.grpc import model_repository_pb2 as repository_pb
from mlserver.grpc.dataplane_pb2_grpc import GRPCInferenceServiceStub
from mlserver.grpc.model_repository_pb2_grpc import ModelRepositoryServiceStub

QUESTION = "What is the capital of France?"
WORDS = ["What", " is", " the", " capital", " of", " France?"]
BODY = types.InferenceRequest.model_validate_json(Path("generate-request.json").read_text()).model_dump()
EXTENSIONS = ["binary_tensor_data", "generate", "model_repository"]
MODELS = ("/v2/models/text-model", "/v2/models/text-model/versions/1")

rest = httpx.Client(base_url="http://localhost:8080")
channel = grpc.insecure_channel("localhost:8081")
stub = GRPCInferenceServiceStub(channel)
repository = ModelRepositoryServiceStub(channel)


def check_live_and_ready() -> None:
    for path in ("/v2/health/live", "/v2/health/ready", *(f"{model}/ready" for model in MODELS)):
        assert rest.get(path).status_code == 200, path


def check_server_metadata() -> None:
    metadata = types.MetadataServerResponse.model_validate(rest.get("/v2").json())
    assert (metadata.name, metadata.extensions) == ("opensearch-ml-stream", EXTENSIONS)
    assert metadata.version


def check_model_metadata() -> None:
    for path in MODELS:
        metadata = types.MetadataModelResponse.model_validate(rest.get(path).json())
        assert (metadata.name, metadata.versions) == ("text-model", ["1"])
        assert metadata.inputs and metadata.outputs


def check_documentation() -> None:
    for path in ("/v2", *MODELS):
        assert "html" in rest.get(f"{path}/docs").headers["content-type"]
        assert "openapi" in rest.get(f"{path}/docs/dataplane.json").json()


def check_infer_and_generate() -> None:
    for path in (f"{model}/{operation}" for model in MODELS for operation in ("infer", "generate")):
        response = types.InferenceResponse.model_validate(rest.post(path, json=BODY).raise_for_status().json())
        assert [output.name for output in response.outputs] == ["output"]
        assert response.outputs[0].data == types.TensorData(root=[QUESTION])
        assert StringRequestCodec.decode_response(response) == [QUESTION]


def check_streams_have_an_event_for_each_word() -> None:
    for path in (f"{model}/{operation}" for model in MODELS for operation in ("infer_stream", "generate_stream")):
        with connect_sse(rest, "POST", path, json=BODY) as source:
            responses = [types.InferenceResponse.model_validate_json(event.data) for event in source.iter_sse()]
        assert [output.data.root for response in responses for output in response.outputs] == [[word] for word in WORDS]
        assert [StringCodec.decode_output(response.outputs[0]) for response in responses] == [[word] for word in WORDS]
        assert len({response.id for response in responses}) == 1
        assert len(responses) == 6


def check_headers() -> None:
    headers = rest.post(f"{MODELS[0]}/infer", json=BODY, headers={"x-foo": "bar"}).headers
    assert headers["x-foo"] == "bar"
    assert headers[CLOUDEVENTS_HEADER_SPECVERSION] == CLOUDEVENTS_HEADER_SPECVERSION_DEFAULT


def check_gzip_request() -> None:
    headers = {"content-encoding": "gzip", "content-type": "application/json"}
    answer = rest.post(f"{MODELS[0]}/infer", content=gzip.compress(json.dumps(BODY).encode()), headers=headers)
    assert types.InferenceResponse.model_validate(answer.json()).outputs[0].data.root == [QUESTION]


def check_unknown_version() -> None:
    for operation in ("infer", "generate", "infer_stream", "generate_stream"):
        answer = rest.post(f"/v2/models/my-model/versions/v0/{operation}", json=BODY)
        assert (answer.status_code, answer.json()["error"]) == (404, "Model my-model with version v0 not found")


def check_invalid_datatype() -> None:
    tensor = {**BODY["inputs"][0], "datatype": "TEXT"}
    answer = rest.post(f"{MODELS[0]}/infer", json={"inputs": [tensor]})
    assert answer.status_code == 422
    names = [datatype.value for datatype in types.Datatype]
    expected = f"Input should be {', '.join(repr(name) for name in names[:-1])} or {names[-1]!r}"
    assert answer.json()["detail"][0]["msg"] == expected, answer.text


def check_repository() -> None:
    for operation, state, found in (("unload", "UNAVAILABLE", 404), ("load", "READY", 200)):
        assert rest.post(f"/v2/repository/models/text-model/{operation}").status_code == 200
        index = rest.post("/v2/repository/index", json=types.RepositoryIndexRequest().model_dump()).json()
        [item] = types.RepositoryIndexResponse.model_validate(index).root
        assert (item.name, item.state) == ("text-model", state)
        assert rest.get(MODELS[0]).status_code == found
    answer = rest.post("/v2/repository/models/my-model/load")
    assert (answer.status_code, answer.json()["error"]) == (404, "Model my-model not found")


def check_grpc_health_and_metadata() -> None:
    assert stub.ServerLive(pb.ServerLiveRequest()).live
    assert stub.ServerReady(pb.ServerReadyRequest()).ready
    server = converters.ServerMetadataResponseConverter.to_types(stub.ServerMetadata(pb.ServerMetadataRequest()))
    assert (server.name, server.extensions) == ("opensearch-ml-stream", EXTENSIONS)
    for version in ("", "1"):
        assert stub.ModelReady(pb.ModelReadyRequest(name="text-model", version=version)).ready
        answer = stub.ModelMetadata(pb.ModelMetadataRequest(name="text-model", version=version))
        model = converters.ModelMetadataResponseConverter.to_types(answer)
        assert (model.name, model.versions) == ("text-model", ["1"])


def check_grpc_infer() -> None:
    for version, use_raw in (("", False), ("1", False), ("", True)):
        answer = stub.ModelInfer(message(version=version, use_raw=use_raw))
        assert bool(answer.raw_output_contents) is use_raw
        response = converters.ModelInferResponseConverter.to_types(answer)
        assert len(response.outputs) == 1
        assert StringCodec.decode_output(response.outputs[0]) == [QUESTION]


def check_grpc_stream_has_a_message_for_each_word() -> None:
    for version, use_raw in (("", False), ("1", False), ("", True)):
        answers = list(stub.ModelStreamInfer(iter([message(version=version, use_raw=use_raw)])))
        responses = [converters.ModelInferResponseConverter.to_types(answer) for answer in answers]
        assert [StringCodec.decode_output(response.outputs[0]) for response in responses] == [[word] for word in WORDS]
        assert all(len(response.outputs) == 1 for response in responses)


def check_grpc_errors() -> None:
    text = "Model my-model with version v1.2.3 not found"
    asked = message("my-model", "v1.2.3")
    for call in (lambda: stub.ModelInfer(asked), lambda: list(stub.ModelStreamInfer(iter([asked])))):
        assert refusal(call) == (grpc.StatusCode.NOT_FOUND, text)


def check_grpc_repository_in_both_services() -> None:
    for service, types_of in ((stub, pb), (repository, repository_pb)):
        for change, asked, state in (
            (service.RepositoryModelUnload, types_of.RepositoryModelUnloadRequest, "UNAVAILABLE"),
            (service.RepositoryModelLoad, types_of.RepositoryModelLoadRequest, "READY"),
        ):
            change(asked(model_name="text-model"))
            [entry] = service.RepositoryIndex(types_of.RepositoryIndexRequest()).models
            assert (entry.name, entry.state) == ("text-model", state)
        unknown = partial(service.RepositoryModelLoad, types_of.RepositoryModelLoadRequest(model_name="my-model"))
        assert refusal(unknown) == (grpc.StatusCode.NOT_FOUND, "Model my-model not found")


def message(model: str = "text-model", version: str = "", use_raw: bool = False) -> Any:
    request = types.InferenceRequest(inputs=[StringCodec.encode_input("prompt", [QUESTION])])
    return converters.ModelInferRequestConverter.from_types(request, model, version, use_raw)


def refusal(call: Callable[[], object]) -> tuple[Any, str]:
    try:
        call()
    except grpc.RpcError as error:
        return error.code(), error.details()
    raise AssertionError("the call went through")


def checks() -> Iterator[tuple[str, Callable[[], None]]]:
    for name, value in sorted(globals().items()):
        if name.startswith("check_"):
            yield name.removeprefix("check_"), value


failures = []
for name, check in checks():
    try:
        check()
        print(name)
    except (AssertionError, httpx.HTTPError, grpc.RpcError, ValueError, LookupError):
        failures.append(f"{name}: {traceback.format_exc()}")
sys.exit("\n".join(failures) or 0)
