"""Streams in the form of Triton's clients, by what they send or by a setting, and clients of the other form."""

import asyncio
from collections.abc import Iterator
from typing import Any

import grpc
import grpc.aio
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from grpc_reflection.v1alpha.reflection_pb2 import ServerReflectionRequest
from grpc_reflection.v1alpha.reflection_pb2_grpc import ServerReflectionStub
from integration_tests.server.grpc_port.grpc_clients import (
    GRPC,
    grpc_address,
    infer_request,
    inference_client,
    sent_by_tritonclient,
    texts,
    until_final,
)
from integration_tests.server.runtimes.faulty_models import serving_models
from integration_tests.support import connector_bodies
from integration_tests.support.background_provider import background_provider
from integration_tests.support.fake_provider import FakeProvider, openai_stream
from integration_tests.support.sidecars import Sidecar

from opensearch_ml_stream.extensions.v2.grpc import inference_messages as messages

PATIENCE_SECONDS = 20


@pytest.fixture(scope="module")
def triton(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sidecar]:
    settings = {"opensearch_ml_stream.grpc_stream_response": "triton", "opensearch_ml_stream.grpc_compression": "gzip"}
    with (
        background_provider(openai_stream(["a", "b"])) as provider,
        serving_models(tmp_path_factory.mktemp("triton"), "joining", settings=settings, arguments=GRPC) as running,
    ):
        running.create_model(connector_bodies.openai(provider.url), name="text-model")
        yield running


async def test_tritons_client_needs_no_setting(sidecar: Sidecar) -> None:
    """It keeps its stream open, and waits for the last response before it sends the next request."""
    async with FakeProvider(openai_stream(["a", "b"])) as provider:
        await asyncio.to_thread(sidecar.create_model, connector_bodies.openai(provider.url), name="of-triton")
        async with inference_client(grpc_address(sidecar), messages.ModelStreamInferResponse) as client:
            stream = client.open_stream(timeout=PATIENCE_SECONDS)
            for id in ("1", "2"):
                await stream.write(sent_by_tritonclient("Hi", "of-triton", id))
                *responses, final = await until_final(stream)
                assert b"".join(one.raw_output_contents[0][4:] for one in responses) == b"ab"
                assert {one.id for one in (*responses, final)} == {id} and not final.outputs
                assert final.parameters["finish_reason"].string_param == "stop"
            await stream.write(sent_by_tritonclient("Hi", "none-such", "3"))
            assert (await stream.read()).error_message == "Model none-such not found"
            await stream.write(sent_by_tritonclient("Hi", "of-triton", "4", empty_final=False))
            assert (await until_final(stream))[-1].id == "4"
            stream.cancel()


async def test_the_default_form_of_tritons_client_shows_itself_by_its_first_request(sidecar: Sidecar) -> None:
    async with FakeProvider(openai_stream(["a", "b"])) as provider:
        await asyncio.to_thread(sidecar.create_model, connector_bodies.openai(provider.url), name="of-triton-too")
        async with inference_client(grpc_address(sidecar), messages.ModelStreamInferResponse) as client:
            stream = client.open_stream(timeout=PATIENCE_SECONDS)
            await stream.write(sent_by_tritonclient("Hi", "none-such", "1", empty_final=False))
            assert (await stream.read()).error_message == "Model none-such not found"
            await stream.write(sent_by_tritonclient("Hi", "of-triton-too", "2", empty_final=False))
            responses = await until_final(stream)
            assert b"".join(one.raw_output_contents[0][4:] for one in responses) == b"ab"
            stream.cancel()


async def test_a_stream_that_began_in_mlservers_form_stays_in_it(sidecar: Sidecar) -> None:
    async with FakeProvider(openai_stream(["a"])) as provider:
        await asyncio.to_thread(sidecar.create_model, connector_bodies.openai(provider.url), name="of-mlserver")
        async with inference_client(grpc_address(sidecar)) as client:
            bare = sent_by_tritonclient("Hi", "of-mlserver", "2", empty_final=False)
            responses = [one async for one in client.stream(infer_request("Hi", "of-mlserver", id="1"), bare)]
    assert {(one.model_name, one.id) for one in responses} == {("of-mlserver", "1"), ("of-mlserver", "2")}


async def test_metadata_of_triton_are_enough(sidecar: Sidecar) -> None:
    async with inference_client(grpc_address(sidecar), messages.ModelStreamInferResponse) as client:
        request = sent_by_tritonclient("Hi", "none-such", "1", empty_final=False)
        call = client.stream(request, metadata=(("triton_grpc_error", "false"),), timeout=PATIENCE_SECONDS)
        assert [one.error_message async for one in call] == ["Model none-such not found"]


async def test_a_request_that_fails_is_told_in_a_message_and_the_next_one_is_answered(triton: Sidecar) -> None:
    async with inference_client(grpc_address(triton), messages.ModelStreamInferResponse) as client:
        requests = infer_request("Hi", "none-such"), infer_request("Hi", id="2")
        first, *others = [one async for one in client.stream(*requests)]
    assert first.error_message == "Model none-such not found"
    responses = [one.infer_response for one in others]
    assert "".join(texts(responses)) == "ab" and {one.id for one in responses} == {"2"}
    finals = [one.parameters["triton_final_response"].bool_param for one in responses]
    assert finals == [False] * (len(finals) - 1) + [True]


async def test_a_client_may_ask_for_a_status_instead(triton: Sidecar) -> None:
    async with inference_client(grpc_address(triton), messages.ModelStreamInferResponse) as client:
        call = client.stream(infer_request("Hi", "none-such"), metadata=(("triton_grpc_error", "true"),))
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await call.read()
    assert failed.value.code() == grpc.StatusCode.NOT_FOUND


async def test_clients_of_mlservers_form_read_the_text_of_an_error_too(triton: Sidecar) -> None:
    """Its field has the number of their `model_name`."""
    async with inference_client(grpc_address(triton)) as client:
        (response,) = [one async for one in client.stream(infer_request("Hi", "none-such"))]
    assert response.model_name == "Model none-such not found" and not response.outputs


async def test_each_message_is_a_request_of_its_own_to_a_model_that_reads_further_ones(triton: Sidecar) -> None:
    async with inference_client(grpc_address(triton), messages.ModelStreamInferResponse) as client:
        stream = client.open_stream(timeout=PATIENCE_SECONDS)
        for number in ("1", "2"):  # the client waits for the end of a response before it sends the next request
            await stream.write(infer_request("tell", "joining", id=number))
            first, again, final = [(await stream.read()).infer_response for _ in range(3)]
            assert texts([first, again]) == ["tell", "tell"]
            assert [one.id for one in (first, again, final)] == [number] * 3
            assert final.parameters["triton_final_response"].bool_param
        stream.cancel()


async def test_reflection_shows_the_form_that_clients_get(triton: Sidecar) -> None:
    async with inference_client(grpc_address(triton)) as client:
        symbol = ServerReflectionRequest(file_containing_symbol=messages.INFERENCE_SERVICE)
        stub: Any = ServerReflectionStub(client.channel)
        (found,) = [response async for response in stub.ServerReflectionInfo(iter([symbol]))]
    file = FileDescriptorProto.FromString(found.file_descriptor_response.file_descriptor_proto[0])
    methods = {method.name: method for method in file.service[0].method}
    assert methods["ModelStreamInfer"].output_type == ".inference.ModelStreamInferResponse"
