"""`inference.GRPCInferenceService` of a running sidecar of two workers."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import grpc.aio
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.reflection_pb2 import ServerReflectionRequest
from grpc_reflection.v1alpha.reflection_pb2_grpc import ServerReflectionStub
from integration_tests.server.grpc_port.grpc_clients import (
    InferenceClient,
    grpc_address,
    infer_request,
    inference_client,
    raw_request,
    texts,
)
from integration_tests.support import connector_bodies
from integration_tests.support.fake_provider import FakeProvider, json_response, openai_stream
from integration_tests.support.sidecars import Sidecar

from opensearch_ml_stream.extensions.v2.grpc import inference_messages as messages

WORDS = ["What", " is", " the", " capital"]
WHOLE = {"choices": [{"message": {"content": "Paris"}, "finish_reason": "stop"}], "usage": {"total_tokens": 9}}


@pytest.fixture
async def client(sidecar: Sidecar) -> AsyncIterator[InferenceClient]:
    async with inference_client(grpc_address(sidecar)) as opened:
        yield opened


async def create_model(sidecar: Sidecar, provider: FakeProvider, name: str) -> str:
    return await asyncio.to_thread(sidecar.create_model, connector_bodies.openai(provider.url), name=name)


async def test_the_server_says_that_it_is_live_and_ready_and_what_it_is(client: InferenceClient) -> None:
    assert (await client.call("ServerLive")).live
    assert (await client.call("ServerReady")).ready
    assert (await client.call("ServerMetadata")).name == "opensearch-ml-stream"


async def test_a_stream_is_a_response_for_each_chunk_and_the_last_says_how_it_ended(
    sidecar: Sidecar, client: InferenceClient
) -> None:
    async with FakeProvider(openai_stream(WORDS, pause=0.01)) as provider:
        await create_model(sidecar, provider, "streaming")
        responses = [one async for one in client.stream(infer_request("Hi", "streaming", id="a-1"))]
        assert provider.requests[0].json()["messages"][-1]["content"] == "Hi"
    assert texts(responses)[: len(WORDS)] == WORDS and "".join(texts(responses)) == "".join(WORDS)
    assert {(one.model_name, one.id, len(one.outputs)) for one in responses} == {("streaming", "a-1", 1)}
    assert [one.parameters["finish_reason"].string_param for one in responses if one.parameters] == ["stop"]
    assert responses[-1].parameters["usage.total_tokens"].int64_param == 5 + len(WORDS)
    assert responses[0].outputs[0].parameters["content_type"].string_param == "str"
    assert list(responses[0].outputs[0].shape) == [1, 1]


async def test_each_message_of_a_stream_is_a_request_of_its_own_answered_in_order(
    sidecar: Sidecar, client: InferenceClient
) -> None:
    async with FakeProvider(lambda request: openai_stream([request.json()["messages"][-1]["content"]])) as provider:
        await create_model(sidecar, provider, "in-order")
        requests = [infer_request("one", "in-order"), infer_request("two", ""), infer_request("three", "in-order")]
        responses = [one async for one in client.stream(*requests)]
    assert [text for text in texts(responses) if text] == ["one", "two", "three"]
    assert len({one.id for one in responses}) == 3


async def test_a_whole_inference_has_one_response(sidecar: Sidecar, client: InferenceClient) -> None:
    async with FakeProvider(json_response(WHOLE)) as provider:
        model_id = await create_model(sidecar, provider, "whole")
        for name in ("whole", model_id):
            call = client.call("ModelInfer", infer_request("Hi", name, id="w"))
            response = await call
            assert texts([response]) == ["Paris"] and response.id == "w"
            assert dict(await call.trailing_metadata())["ce-id"] == "w"


async def test_raw_contents_get_raw_contents(sidecar: Sidecar, client: InferenceClient) -> None:
    async with FakeProvider(openai_stream(["é", "\n"])) as provider:
        await create_model(sidecar, provider, "raw")
        responses = [one async for one in client.stream(raw_request("Hi", "raw"))]
    assert [one.raw_output_contents[0] for one in responses][:2] == [b"\2\0\0\0" + "é".encode(), b"\1\0\0\0\n"]
    assert not any(one.outputs[0].HasField("contents") for one in responses)


@pytest.mark.parametrize("compression", [grpc.Compression.Gzip, grpc.Compression.Deflate])
async def test_requests_may_be_compressed(
    sidecar: Sidecar, client: InferenceClient, compression: grpc.Compression
) -> None:
    async with FakeProvider(openai_stream(["a"])) as provider:
        await create_model(sidecar, provider, f"compressed-{compression}")
        request = infer_request("long " * 1000, f"compressed-{compression}")
        responses = [one async for one in client.stream(request, compression=compression)]
    assert texts(responses)[0] == "a"
    assert len(provider.requests[0].json()["messages"][-1]["content"]) == 5000


async def test_a_model_is_in_the_index_ready_and_described(sidecar: Sidecar, client: InferenceClient) -> None:
    async with FakeProvider(json_response(WHOLE)) as provider:
        await create_model(sidecar, provider, "indexed")
        await client.call("RepositoryModelLoad", messages.RepositoryModelLoadRequest(model_name="indexed"))
        ready = await client.call("RepositoryIndex", messages.RepositoryIndexRequest(ready=True))
        assert "indexed" in {one.name for one in ready.models}
        assert (await client.call("ModelReady", messages.ModelReadyRequest(name="indexed"))).ready
        metadata = await client.call("ModelMetadata", messages.ModelMetadataRequest(name="indexed"))
        assert metadata.name == "indexed" and metadata.inputs and metadata.outputs[0].datatype == "BYTES"
        await client.call("RepositoryModelUnload", messages.RepositoryModelUnloadRequest(model_name="indexed"))
        ready = await client.call("RepositoryIndex", messages.RepositoryIndexRequest(ready=True))
        assert "indexed" not in {one.name for one in ready.models}
    assert not (await client.call("ModelReady", messages.ModelReadyRequest(name="nowhere"))).ready


async def test_a_model_that_is_not_there_is_not_found(client: InferenceClient) -> None:
    request = infer_request("Hi", "my-model", version="v1.2.3")
    for call in (client.call("ModelInfer", request), client.stream(request).read()):
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await call
        assert failed.value.code() == grpc.StatusCode.NOT_FOUND
        assert failed.value.details() == "Model my-model with version v1.2.3 not found"


async def test_a_failure_of_the_provider_is_no_status_that_clients_retry(
    sidecar: Sidecar, client: InferenceClient
) -> None:
    async with FakeProvider(json_response({"error": {"message": "overloaded"}}, 503)) as provider:
        await create_model(sidecar, provider, "failing")
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await client.call("ModelInfer", infer_request("Hi", "failing"))
    assert failed.value.code() == grpc.StatusCode.UNKNOWN
    assert ("provider-status", "503") in tuple(failed.value.trailing_metadata() or ())


async def test_a_stream_that_breaks_off_ends_with_a_status_behind_its_messages(
    sidecar: Sidecar, client: InferenceClient
) -> None:
    async with FakeProvider(openai_stream(["a", "b"])[:3]) as provider:
        await create_model(sidecar, provider, "truncated")
        responses = []
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            async for one in client.stream(infer_request("Hi", "truncated"), timeout=20):
                responses.append(one)
                await provider.__aexit__(None, None, None)
    assert texts(responses)[0] == "a"
    assert failed.value.code() == grpc.StatusCode.UNKNOWN


async def test_a_message_that_is_no_request_is_an_invalid_argument(client: InferenceClient) -> None:
    call = client.channel.unary_unary(f"/{messages.INFERENCE_SERVICE}/ModelInfer")
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await call(b"\x0a\xff")
    assert failed.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert failed.value.details() == "The request is not a protobuf message"


async def test_reflection_shows_the_services_and_their_messages(client: InferenceClient) -> None:
    def asked() -> list[ServerReflectionRequest]:
        symbol = ServerReflectionRequest(file_containing_symbol=messages.INFERENCE_SERVICE)
        return [ServerReflectionRequest(list_services=""), symbol]

    stub: Any = ServerReflectionStub(client.channel)
    listed, found = [response async for response in stub.ServerReflectionInfo(iter(asked()))]
    names = {service.name for service in listed.list_services_response.service}
    assert names >= {
        messages.INFERENCE_SERVICE,
        messages.REPOSITORY_SERVICE,
        "grpc.health.v1.Health",
        "grpc.reflection.v1alpha.ServerReflection",
    }
    assert b"ModelStreamInfer" in found.file_descriptor_response.file_descriptor_proto[0]


async def test_reflection_shows_a_file_with_its_imports_and_says_what_it_does_not_know(client: InferenceClient) -> None:
    asked = [
        ServerReflectionRequest(host="h", file_containing_symbol=messages.REPOSITORY_SERVICE),
        ServerReflectionRequest(file_by_filename="health.proto"),
        ServerReflectionRequest(file_containing_symbol="no.such.Service"),
        ServerReflectionRequest(all_extension_numbers_of_type="inference.ModelInferRequest"),
        ServerReflectionRequest(),
    ]
    stub: Any = ServerReflectionStub(client.channel)
    responses = [response async for response in stub.ServerReflectionInfo(iter(asked))]
    files = [response.file_descriptor_response.file_descriptor_proto for response in responses]
    names = [[FileDescriptorProto.FromString(file).name for file in found] for found in files]
    assert names == [["model_repository.proto", "inference.proto"], ["health.proto"], [], [], []]
    assert [response.error_response.error_code for response in responses] == [0, 0, 5, 5, 3]
    assert [response.original_request for response in responses] == asked and responses[0].valid_host == "h"


async def test_health_is_that_of_the_store(client: InferenceClient) -> None:
    stub: Any = health_pb2_grpc.HealthStub(client.channel)
    for service in ("", messages.INFERENCE_SERVICE, messages.REPOSITORY_SERVICE):
        response = await stub.Check(health_pb2.HealthCheckRequest(service=service))
        assert response.status == health_pb2.HealthCheckResponse.SERVING
