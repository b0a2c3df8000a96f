"""Other people's clients at `/v2`: curl, httpx, httpx-sse, with gzip and without, over two workers."""

import asyncio
import gzip
import json
import subprocess
import zlib

import httpx
import pytest
from httpx_sse import aconnect_sse
from integration_tests.predict.streams.stream_calls import openai_model
from integration_tests.server.v2.v2_calls import GENERATE, WORDS, events, model_path, texts
from integration_tests.support.conditions import eventually_async
from integration_tests.support.fake_provider import (
    LAST_CHUNK,
    SSE_HEAD,
    FakeProvider,
    Gate,
    chunk,
    json_response,
    openai_delta,
    openai_stream,
)
from integration_tests.support.sidecars import Sidecar

WHOLE = {
    "choices": [{"message": {"role": "assistant", "content": "Paris"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6},
}


async def run(*command: str) -> subprocess.CompletedProcess[bytes]:
    return await asyncio.to_thread(subprocess.run, command, capture_output=True, timeout=30, check=True)


@pytest.mark.parametrize(
    ("operation", "accepted"),
    [("infer_stream", "gzip"), ("generate_stream", "identity"), ("infer_stream/", "gzip;q=0")],
)
async def test_a_client_of_server_sent_events_reads_a_response_for_each_word(
    client: httpx.AsyncClient, two_workers: Sidecar, accepted: str, operation: str
) -> None:
    async with FakeProvider(openai_stream(WORDS, 0.01)) as provider:
        model_id = await openai_model(two_workers, provider.url)
        path = model_path(model_id, operation)
        headers = {"Accept-Encoding": accepted}
        async with aconnect_sse(client, "POST", path, json=GENERATE, headers=headers) as source:
            assert source.response.headers.get("content-encoding") == ("gzip" if accepted == "gzip" else None)
            responses = [event.json() async for event in source.aiter_sse()]
    assert texts(responses) == WORDS
    assert all(len(response["outputs"]) == 1 for response in responses)
    assert len({response["id"] for response in responses}) == 1 and responses[0]["id"]
    finishes = [response["parameters"].get("finish_reason") for response in responses]
    assert finishes == [None] * (len(responses) - 1) + ["stop"]


async def test_a_compressed_stream_is_flushed_with_every_event(client: httpx.AsyncClient, two_workers: Sidecar) -> None:
    """The provider says the next word only when the client has read the one before."""
    gates = [Gate() for _ in WORDS]
    said = [step for word, gate in zip(WORDS, gates, strict=True) for step in (chunk(openai_delta(word)), gate)]
    async with FakeProvider([SSE_HEAD, *said, chunk(b"data: [DONE]\n\n"), LAST_CHUNK]) as provider:
        path = model_path(await openai_model(two_workers, provider.url), "infer_stream")
        reader, words = zlib.decompressobj(31), []
        async with client.stream("POST", path, json=GENERATE, headers={"Accept-Encoding": "gzip"}) as response:
            async for part in response.aiter_raw():
                words += texts(events(reader.decompress(part).decode()))
                for gate in gates[: len(words)]:
                    gate.open()
    assert words == WORDS and reader.eof


async def test_heartbeats_keep_a_compressed_stream_readable(client: httpx.AsyncClient, two_workers: Sidecar) -> None:
    gate, script = Gate(), openai_stream(WORDS)
    async with FakeProvider([*script[:3], gate, *script[3:]]) as provider:
        path = model_path(await openai_model(two_workers, provider.url), "infer_stream")
        text = ""
        async with client.stream("POST", path, json=GENERATE) as response:
            async for part in response.aiter_text():
                text += part
                if text.count(": ping\n") >= 2:
                    gate.open()
    assert response.headers["content-encoding"] == "gzip"
    assert texts(events(text)) == WORDS


@pytest.mark.parametrize(("operation", "accepted"), [("infer", "gzip"), ("generate", "identity")])
async def test_a_whole_inference_is_one_response(
    client: httpx.AsyncClient, two_workers: Sidecar, accepted: str, operation: str
) -> None:
    whole = {**WHOLE, "choices": [{"message": {"content": "Paris " * 300}, "finish_reason": "stop"}]}
    async with FakeProvider(json_response(whole)) as provider:
        model_id = await openai_model(two_workers, provider.url)
        response = await client.post(
            model_path(model_id, operation),
            content=gzip.compress(json.dumps({**GENERATE, "id": "r1"}).encode()),
            headers={"Content-Encoding": "gzip", "Accept-Encoding": accepted, "x-foo": "bar"},
        )
        assert provider.requests[0].json()["messages"] == [
            {"role": "user", "content": GENERATE["inputs"][0]["data"][0]}
        ]
    assert response.status_code == 200
    assert response.headers.get("content-encoding") == ("gzip" if accepted == "gzip" else None)
    assert (response.headers["x-foo"], response.headers["ce-specversion"]) == ("bar", "0.3")
    body = response.json()
    assert (body["id"], texts([body]), body["parameters"]["finish_reason"]) == ("r1", ["Paris " * 300], "stop")


@pytest.mark.programs("curl")
@pytest.mark.parametrize("options", [(), ("--compressed",)])
async def test_curl_prints_a_stream(two_workers: Sidecar, options: tuple[str, ...]) -> None:
    async with FakeProvider(openai_stream(WORDS)) as provider:
        model_id = await openai_model(two_workers, provider.url)
        url = two_workers.url + model_path(model_id, "generate_stream")
        ended = await run(
            "curl", "-sN", *options, url, "-H", "Content-Type: application/json", "-d", json.dumps(GENERATE)
        )
    assert texts(events(ended.stdout.decode())) == WORDS


async def test_a_model_has_metadata_and_is_ready_and_in_the_index(
    client: httpx.AsyncClient, two_workers: Sidecar
) -> None:
    async with FakeProvider([]) as provider:
        model_id = await openai_model(two_workers, provider.url, name="acme/Chatty-8B")
    for name in (model_id, "acme/Chatty-8B", "acme%2FChatty-8B"):
        for version in ("", "/versions/1"):
            metadata = await client.get(f"/v2/models/{name}{version}")
            assert (metadata.status_code, metadata.json()["platform"] != "") == (200, True), metadata.text
            ready = await client.get(f"/v2/models/{name}{version}/ready")
            assert (ready.status_code, ready.json()) == (200, {"name": name.replace("%2F", "/"), "ready": True})
    index = (await client.post("/v2/repository/index", json={})).json()
    assert "acme/Chatty-8B" in [entry["name"] for entry in index]


async def test_a_model_is_unloaded_and_loaded(client: httpx.AsyncClient, two_workers: Sidecar) -> None:
    async with FakeProvider(openai_stream(["Hi"])) as provider:
        model_id = await openai_model(two_workers, provider.url, name="comes-and-goes")
        repository = f"/v2/repository/models/{model_id}"
        assert (await client.post(f"{repository}/unload")).status_code == 200
        ready = {"ready": True}
        names = [entry["name"] for entry in (await client.post("/v2/repository/index", json=ready)).json()]
        assert "comes-and-goes" not in names
        assert (await client.get(f"/v2/models/{model_id}/ready")).status_code == 404
        assert (await client.post(f"{repository}/load", json={})).status_code == 200
        names = [entry["name"] for entry in (await client.post("/v2/repository/index", json=ready)).json()]
        assert "comes-and-goes" in names
        response = await client.post(model_path("comes-and-goes", "infer_stream"), json=GENERATE)
    assert texts(events(response.text)) == ["Hi"]


async def test_the_server_says_what_it_is(client: httpx.AsyncClient) -> None:
    for path, body in (("/v2/health/live", {"live": True}), ("/v2/health/ready/", {"ready": True})):
        response = await client.get(path)
        assert (response.status_code, response.json()) == (200, body)
    for path in ("/v2", "/v2/"):
        server = (await client.get(path)).json()
        assert server.keys() == {"name", "version", "extensions"}


async def test_a_hundred_streams_at_once_are_each_whole(two_workers: Sidecar) -> None:
    gate, script = Gate(), openai_stream(WORDS)
    limits = httpx.Limits(max_connections=100)
    async with (
        FakeProvider([*script[:3], gate, *script[3:]]) as provider,
        httpx.AsyncClient(base_url=two_workers.url, timeout=30, limits=limits) as many,
    ):
        path = model_path(await openai_model(two_workers, provider.url), "infer_stream")
        streams = [asyncio.create_task(many.post(path, json=GENERATE)) for _ in range(100)]
        await eventually_async(lambda: len(provider.requests) == 100)
        gate.open()
        responses = await asyncio.gather(*streams)
    assert all(texts(events(response.text)) == WORDS for response in responses)
