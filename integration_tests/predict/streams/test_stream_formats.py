"""`_predict/stream` as its users meet it: a real sidecar, real sockets, both formats, and the tools that read them."""

import asyncio
import json
import subprocess
from typing import Any

import httpx
import pytest
from httpx_sse import connect_sse
from integration_tests.predict.streams.stream_calls import (
    QUESTION,
    data_as_map,
    lines,
    openai_model,
    stream_path,
    streamed,
)
from integration_tests.support import connector_bodies
from integration_tests.support.conditions import eventually_async
from integration_tests.support.fake_provider import (
    LAST_CHUNK,
    SSE_HEAD,
    FakeProvider,
    Gate,
    Script,
    Step,
    anthropic_stream,
    chunk,
    chunked_stream,
    json_response,
    openai_delta,
    openai_stream,
    sse_event,
)
from integration_tests.support.sidecars import Sidecar


@pytest.mark.parametrize("interface", ["openai", "anthropic"])
async def test_a_model_of_a_shipped_blueprint_serves_the_rfcs_own_request(
    client: httpx.AsyncClient, sidecar: Sidecar, interface: str
) -> None:
    script = {"openai": openai_stream, "anthropic": anthropic_stream}[interface](["For", "ty", "-two"])
    async with FakeProvider(script) as provider:
        connector = getattr(connector_bodies, interface)(provider.url)
        model_id = await asyncio.to_thread(sidecar.create_model, connector)
        response = await client.post(stream_path(model_id), json=QUESTION)
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/x-ndjson"
    assert response.headers["cache-control"] == "no-cache, no-transform"
    assert response.headers["x-accel-buffering"] == "no"
    *chunks, last = lines(response.text)
    assert chunks[0] == {
        "inference_results": [{"output": [{"name": "response", "dataAsMap": {"response": "For"}}], "status_code": 200}]
    }
    assert [data_as_map(one)["response"] for one in chunks] == ["For", "ty", "-two"]
    end = data_as_map(last)
    assert (end["response"], end["is_last"], end["finish_reason"]) == ("", True, "stop")
    assert end["usage"] == {"input_tokens": 5, "output_tokens": 3, "total_tokens": 8}
    assert end["model"] in ("gpt-fake", "claude-fake")
    assert provider.requests[0].json()["stream"] is True
    assert provider.requests[0].json()["messages"][0]["content"] == "What is the meaning of life?"


async def test_server_sent_events_come_in_the_shape_of_ml_commons(client: httpx.AsyncClient, sidecar: Sidecar) -> None:
    response = await streamed(client, sidecar, openai_stream(["Hello", ' "wörld"']), "?format=sse")
    assert response.headers["content-type"] == "text/event-stream"
    first, second, last = response.text.removesuffix("\n\n").split("\n\n")
    assert first == (
        'data: {"inference_results":[{"output":[{"name":"response","dataAsMap":{"content":"Hello","is_last":false}}]}]}'
    )
    assert data_as_map(json.loads(second[6:])) == {"content": ' "wörld"', "is_last": False}
    assert data_as_map(json.loads(last[6:]))["is_last"] is True


@pytest.mark.parametrize(
    ("headers", "query", "parameters", "content_type"),
    [
        ({"accept": "text/event-stream"}, "", {}, "text/event-stream"),
        ({}, "", {"_llm_interface": "openai/v1/chat/completions"}, "text/event-stream"),
        ({}, "?stream=false", {}, "application/json; charset=UTF-8"),
        ({"accept": "application/json"}, "", {}, "application/json; charset=UTF-8"),
    ],
)
async def test_the_client_chooses_the_format(
    client: httpx.AsyncClient, sidecar: Sidecar, headers: dict[str, str], query: str, parameters: Any, content_type: str
) -> None:
    def script(request: Any) -> Script:
        return openai_stream(["Hi"]) if request.json().get("stream") else json_response({"choices": []})

    async with FakeProvider(script) as provider:
        model_id = await openai_model(sidecar, provider.url)
        body = {"parameters": {"inputs": "x", **parameters}}
        response = await client.post(stream_path(model_id, query), json=body, headers=headers)
    assert (response.status_code, response.headers["content-type"]) == (200, content_type)


async def test_the_llm_interface_of_a_connector_chooses_no_format(client: httpx.AsyncClient, sidecar: Sidecar) -> None:
    async with FakeProvider(openai_stream(["Hi"])) as provider:
        connector = connector_bodies.openai(provider.url)
        connector["parameters"]["_llm_interface"] = "openai/v1/chat/completions"
        model_id = await asyncio.to_thread(sidecar.create_model, connector)
        response = await client.post(stream_path(model_id), json=QUESTION)
    assert response.headers["content-type"] == "application/x-ndjson"
    assert [data_as_map(line)["response"] for line in lines(response.text)] == ["Hi", ""]


async def test_reasoning_and_tool_calls_stay_out_of_the_text(client: httpx.AsyncClient, sidecar: Sidecar) -> None:
    def call(index: int, **function: str) -> bytes:
        fragment = {"index": index, "function": function} | ({"id": f"call_{index}"} if "name" in function else {})
        return sse_event({"choices": [{"index": 0, "delta": {"tool_calls": [fragment]}}]})

    pieces = [
        sse_event({"choices": [{"index": 0, "delta": {"reasoning_content": "hmm"}}]}),
        openai_delta("Let me look"),
        call(0, name="weather", arguments=""),
        call(1, name="time", arguments=""),
        call(0, arguments='{"city":'),
        call(1, arguments="{}"),
        call(0, arguments='"Rome"}'),
        sse_event({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}),
        b"data: [DONE]\n\n",
    ]
    *chunks, last = map(data_as_map, lines((await streamed(client, sidecar, chunked_stream(pieces))).text))
    assert "".join(one["response"] for one in chunks) == "Let me look"
    assert "".join(one.get("reasoning", "") for one in chunks) == "hmm"
    arguments = {0: "", 1: ""}
    for one in chunks:
        for fragment in one.get("tool_calls", []):
            arguments[fragment["index"]] += fragment["arguments"]
    assert arguments == {0: '{"city":"Rome"}', 1: "{}"}
    assert last["finish_reason"] == "tool_calls"


@pytest.mark.programs("curl", "jq")
async def test_curl_and_jq_print_the_text_as_it_comes(sidecar: Sidecar) -> None:
    texts = ["For", "ty", "-two"]
    gates = [Gate() for _ in texts]
    script: list[Step] = [SSE_HEAD]
    for text, gate in zip(texts, gates, strict=True):
        script += [chunk(openai_delta(text)), gate]
    script += [chunk(b"data: [DONE]\n\n"), LAST_CHUNK]
    async with FakeProvider(script) as provider:
        url = sidecar.url + stream_path(await openai_model(sidecar, provider.url))
        command = (
            f"curl -sN '{url}' -H 'Content-Type: application/json' -d '{json.dumps(QUESTION)}' | "
            "jq --unbuffered -rj '.error.reason? // .inference_results[0].output[0].dataAsMap.response'"
        )
        process = await asyncio.create_subprocess_shell(command, stdout=subprocess.PIPE)
        assert process.stdout is not None
        for text, gate in zip(texts, gates, strict=True):
            # The provider sends no more until this piece is printed.
            assert await asyncio.wait_for(process.stdout.readexactly(len(text)), 20) == text.encode()
            gate.open()
        assert await process.stdout.read() == b""
        assert await process.wait() == 0


async def test_httpx_sse_reads_the_events(sidecar: Sidecar) -> None:
    async with FakeProvider(openai_stream(["For", "ty"])) as provider:
        model_id = await openai_model(sidecar, provider.url)

        def read() -> list[dict[str, Any]]:
            with connect_sse(sidecar.client, "POST", stream_path(model_id), json=QUESTION) as source:
                return [event.json() for event in source.iter_sse()]

        events = await asyncio.to_thread(read)
    assert [data_as_map(event)["content"] for event in events] == ["For", "ty", ""]


async def test_a_changed_connector_comes_into_force(client: httpx.AsyncClient, sidecar: Sidecar) -> None:
    async with FakeProvider(openai_stream(["old"])) as old, FakeProvider(openai_stream(["new"])) as new:
        model_id = await openai_model(sidecar, old.url)

        async def text() -> str:
            return (await client.post(stream_path(model_id), json=QUESTION)).text

        async def is_new() -> bool:
            return "new" in await text()

        connector_id = (await client.get(f"/_plugins/_ml/models/{model_id}")).json()["connector_id"]
        assert "old" in await text()
        await client.post(f"/_plugins/_ml/models/{model_id}/_undeploy")
        change = await client.put(
            f"/_plugins/_ml/connectors/{connector_id}", json={"parameters": {"endpoint": new.url}}
        )
        assert change.status_code == 200, change.text
        await eventually_async(is_new)
