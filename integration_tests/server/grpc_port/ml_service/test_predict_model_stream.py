"""OpenSearch's MLService over gRPC, against a sidecar of two workers."""

from pathlib import Path
from typing import Any

import grpc
import pytest
from integration_tests.server.grpc_port.ml_service.grpc_ports import Port, running_port
from integration_tests.server.grpc_port.ml_service.ml_service_client import QUESTION, ml_service_client
from integration_tests.support.background_provider import background_provider
from integration_tests.support.connector_bodies import openai
from integration_tests.support.fake_provider import (
    SSE_HEAD,
    Act,
    Script,
    chunk,
    json_response,
    openai_delta,
    openai_stream,
)

StatusCode = grpc.StatusCode
INTERFACE = "openai/v1/chat/completions"


def guarded(**sides: Any) -> dict[str, Any]:
    return {"guardrails": {"type": "local_regex", **{f"{side}_guardrail": guard for side, guard in sides.items()}}}


def test_each_chunk_is_a_message_and_the_last_one_says_how_it_ended(port: Port) -> None:
    with background_provider(openai_stream(["Hel", "lo ", "wörld"])) as provider:
        streamed = port.client.predict(port.sidecar.create_model(openai(provider.url)))
    assert streamed.texts == ["Hel", "lo ", "wörld", ""]
    assert streamed.ending == {
        "finish_reason": "stop",
        "native_finish_reason": "stop",
        "usage": {"input_tokens": 5, "output_tokens": 3, "total_tokens": 8},
        "model": "gpt-fake",
    }
    assert streamed.status is StatusCode.OK
    assert provider.requests[0].json()["messages"] == QUESTION["messages"]
    assert provider.requests[0].json()["stream"] is True


def test_the_interface_says_how_a_provider_streams_whose_url_does_not(port: Port) -> None:
    with background_provider(openai_stream(["ok"])) as provider:
        created = openai(provider.url)
        created["actions"][0]["url"] = f"{provider.url}/of/our/own"
        model_id = port.sidecar.create_model(created)
        unknown = port.client.predict(model_id)
        streamed = port.client.predict(model_id, {**QUESTION, "x_llm_interface": INTERFACE})
    assert unknown.status is StatusCode.INVALID_ARGUMENT
    assert streamed.text == "ok"


def test_a_provider_that_does_not_stream_is_one_chunk(port: Port) -> None:
    whole = {"choices": [{"message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}]}
    with background_provider(json_response(whole)) as provider:
        streamed = port.client.predict(port.sidecar.create_model(openai(provider.url)))
    assert streamed.texts == ["Hello", ""]
    assert streamed.ending["finish_reason"] == "stop"


def test_a_long_response_comes_whole(port: Port) -> None:
    texts = [f"{number} " + "x" * (number % 300) for number in range(5_000)]
    with background_provider(openai_stream(texts)) as provider:
        streamed = port.client.predict(port.sidecar.create_model(openai(provider.url)))
    assert streamed.texts == [*texts, ""]


def test_a_request_that_is_wrong_is_told_why(port: Port) -> None:
    refused = port.client.send(b"")
    assert (refused.status, refused.details) == (StatusCode.INVALID_ARGUMENT, "model_id is required")
    assert refused.trailers["error-type"]


def test_a_model_that_does_not_exist_is_not_found(port: Port) -> None:
    refused = port.client.predict("nosuchmodel")
    assert (refused.status, refused.details) == (StatusCode.NOT_FOUND, "Failed to find model")


@pytest.mark.parametrize(
    ("status", "code"),
    [(429, StatusCode.RESOURCE_EXHAUSTED), (503, StatusCode.INTERNAL)],
)
def test_a_provider_that_refuses_gives_a_status_and_its_own_words(
    port: Port, status: int, code: grpc.StatusCode
) -> None:
    error = {"error": {"message": "not today"}}
    with background_provider(json_response(error, status, retry_after="7")) as provider:
        refused = port.client.predict(port.sidecar.create_model(openai(provider.url)))
    assert refused.status is code
    assert "not today" in refused.details
    assert refused.trailers["provider-status"] == str(status)
    assert refused.trailers["retry-after"] == "7"
    assert refused.texts == []


def test_a_stream_that_breaks_off_ends_with_a_status_and_without_a_last_message(port: Port) -> None:
    script: Script = [SSE_HEAD, chunk(openai_delta("half")), Act.CLOSE]
    with background_provider(script) as provider:
        streamed = port.client.predict(port.sidecar.create_model(openai(provider.url)))
    assert (streamed.texts, streamed.last) == (["half"], [False])
    assert streamed.status is StatusCode.INTERNAL
    assert streamed.trailers["error-type"] == "stream_truncated_exception"


def test_guardrails_hold(port: Port) -> None:
    with background_provider(openai_stream(["a ", "bomb", " goes off"])) as provider:
        by_output = port.sidecar.create_model(openai(provider.url), **guarded(output={"regex": [".*bomb.*"]}))
        by_input = port.sidecar.create_model(openai(provider.url), **guarded(input={"regex": [".*hi.*"]}))
        stopped = port.client.predict(by_output)
        refused = port.client.predict(by_input)
    assert "bomb" not in stopped.text
    assert stopped.ending["finish_reason"] == "content_filter"
    assert refused.status is StatusCode.INVALID_ARGUMENT
    assert len(provider.requests) == 1


def test_a_rate_limit_holds_over_both_ports(port: Port) -> None:
    with background_provider(openai_stream(["ok"])) as provider:
        limiter = {"limit": "2", "unit": "DAYS"}
        model_id = port.sidecar.create_model(openai(provider.url), rate_limiter=limiter)
        path = f"/_plugins/_ml/models/{model_id}/_predict/stream"
        assert port.sidecar.client.post(path, json={"parameters": QUESTION}).status_code == 200
        statuses = [port.client.predict(model_id).status for _ in range(2)]
    assert statuses == [StatusCode.OK, StatusCode.RESOURCE_EXHAUSTED]


def test_a_model_of_another_tenant_is_not_for_the_caller(tmp_path: Path) -> None:
    settings = {"plugins.ml_commons.multi_tenancy_enabled": "true"}
    with background_provider(openai_stream(["ok"])) as provider, running_port(tmp_path, settings=settings) as port:
        port.sidecar.client.headers["x-tenant-id"] = "t1"
        model_id = port.sidecar.create_model(openai(provider.url))
        with ml_service_client(port.target, ("x-tenant-id", "t2")) as other:
            assert other.predict(model_id).status is StatusCode.PERMISSION_DENIED
        refused = port.client.predict(model_id)
        assert (refused.status, refused.details) == (
            StatusCode.PERMISSION_DENIED,
            "Tenant ID header is missing or has no value",
        )
        with ml_service_client(port.target, ("x-tenant-id", "t1")) as own:
            assert own.predict(model_id).text == "ok"


def test_there_are_no_agents(port: Port) -> None:
    method = port.client.channel.unary_stream("/org.opensearch.protobufs.services.MLService/ExecuteAgentStream")
    with pytest.raises(grpc.RpcError) as refused:
        list(method(b"", timeout=30))
    assert refused.value.code() is StatusCode.UNIMPLEMENTED
