"""StreamingMLClient and AsyncStreamingMLClient against a sidecar and scripted providers."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, closing
from inspect import isawaitable
from pathlib import Path
from typing import Any

import pytest
from integration_tests.support.background_provider import background_provider
from integration_tests.support.conditions import eventually_async
from integration_tests.support.connector_bodies import BLUEPRINTS
from integration_tests.support.fake_provider import (
    Act,
    Request,
    Script,
    chunk,
    head,
    json_response,
    openai_delta,
    openai_stream,
    sse_event,
)
from integration_tests.support.sidecars import Sidecar
from opensearchpy import AsyncOpenSearch, OpenSearch

from opensearch_ml_stream.client import (
    AsyncStreamingMLClient,
    Chunk,
    ProviderFailed,
    RequestRefused,
    StreamingMLClient,
    StreamTruncated,
)

QUESTION = {"inputs": "hi"}
STREAM_HEAD = head(content_type="text/event-stream", transfer_encoding="chunked")
BLUEPRINT = """{
  "name": "b", "description": "d", "credential": {"key": "the key"},
  "connector": {"name": "c", "version": "1", "protocol": "http", "parameters": {"model": "<model>", "t": 1},
                "credential": {"key": "<key>"}, "actions": []}
}"""


class Either:
    """A blocking or an async client behind one interface."""

    def __init__(self, client: StreamingMLClient | AsyncStreamingMLClient) -> None:
        self._client = client

    async def call(self, method: str, /, *arguments: Any, **more: Any) -> Any:
        result = getattr(self._client, method)(*arguments, **more)
        return await result if isawaitable(result) else result

    async def stream(self, model_id: str, parameters: dict[str, Any]) -> AsyncGenerator[Chunk]:
        if isinstance(self._client, StreamingMLClient):
            with closing(self._client.predict_stream(model_id, parameters)) as blocking:
                for one in blocking:
                    yield one
        else:
            async with aclosing(self._client.predict_stream(model_id, parameters)) as chunks:
                async for one in chunks:
                    yield one

    async def model_at(self, blueprint: str, endpoint: str) -> str:
        """The id of a new model over the provider there."""
        made = self.call(
            "create_model", blueprint, credential={"openAI_key": "k"}, parameters={"endpoint": endpoint, "model": "m"}
        )
        return str(await made)


Connect = Callable[[str], Either]


@pytest.fixture(params=["blocking", "async"])
async def connect(request: pytest.FixtureRequest) -> AsyncIterator[Connect]:
    if request.param == "blocking":
        with OpenSearch("http://localhost:1") as cluster:
            yield lambda url: Either(StreamingMLClient(cluster, url=url))
    else:
        async with AsyncOpenSearch("http://localhost:1") as async_cluster:
            yield lambda url: Either(AsyncStreamingMLClient(async_cluster, url=url))


@pytest.fixture
def client(connect: Connect, shared_sidecar: Sidecar) -> Either:
    return connect(shared_sidecar.url)


async def test_a_connector_that_no_model_can_have_is_deleted(
    client: Either, shared_sidecar: Sidecar, tmp_path: Path
) -> None:
    def connectors() -> int:
        found = shared_sidecar.post("/connectors/_search", {"query": {"match_all": {}}})
        return int(found["hits"]["total"]["value"])

    blueprint: dict[str, Any] = json.loads((BLUEPRINTS / "openai-chat.json").read_text())
    (tmp_path / "b.json").write_text(json.dumps(blueprint | {"model": {"model_group_id": "nowhere"}}))
    before = connectors()
    with pytest.raises(RequestRefused, match="model group"):
        await client.model_at(str(tmp_path / "b.json"), "http://127.0.0.1:1")
    assert connectors() == before


async def test_a_stream_ends_with_the_chunk_that_says_how(client: Either) -> None:
    with background_provider(openai_stream(["a", "b"])) as provider:
        model_id = await client.model_at("openai-chat", provider.url)
        chunks = [one async for one in client.stream(model_id, QUESTION)]
    assert [(one.text, one.is_last) for one in chunks] == [("a", False), ("b", False), ("", True)]
    assert (chunks[-1].finish_reason, chunks[-1].model) == ("stop", "gpt-fake")


async def test_a_stream_that_the_provider_cuts_raises_after_what_it_said(client: Either) -> None:
    with background_provider([STREAM_HEAD, chunk(openai_delta("a")), Act.CLOSE]) as provider:
        chunks = client.stream(await client.model_at("openai-chat", provider.url), QUESTION)
        assert (await anext(chunks)).text == "a"
        with pytest.raises(StreamTruncated) as raised:
            await anext(chunks)
    assert (raised.value.status, raised.value.type) == (424, "stream_truncated_exception")


async def test_an_error_that_the_provider_sends_in_its_stream_is_the_providers(client: Either) -> None:
    failure = sse_event({"error": {"message": "overloaded", "type": "server_error"}})
    with background_provider([STREAM_HEAD, chunk(openai_delta("a")), chunk(failure), Act.CLOSE]) as provider:
        chunks = client.stream(await client.model_at("openai-chat", provider.url), QUESTION)
        assert (await anext(chunks)).text == "a"
        with pytest.raises(ProviderFailed, match="overloaded"):
            await anext(chunks)


@pytest.mark.parametrize("streaming", [True, False], ids=["stream", "whole"])
async def test_a_providers_refusal_has_its_status_and_the_seconds_to_wait(client: Either, streaming: bool) -> None:
    refusal = json_response({"error": {"message": "slow down"}}, 429, retry_after="21")
    with background_provider(refusal) as provider:
        model_id = await client.model_at("openai-chat", provider.url)
        with pytest.raises(ProviderFailed) as raised:
            if streaming:
                assert [one async for one in client.stream(model_id, QUESTION)] == []
            await client.call("predict", model_id, QUESTION)
    error = raised.value
    assert (error.status, error.provider_status, error.retry_after) == (429, 429, 21.0)
    assert "slow down" in error.reason
    assert len(provider.requests) == 1


async def test_what_the_sidecar_refuses_is_refused_in_its_words(client: Either) -> None:
    with pytest.raises(RequestRefused, match=r"^Failed to find model.* \(status 404\)$") as raised:
        assert [one async for one in client.stream("nowhere", QUESTION)] == []
    assert raised.value.status == 404
    with pytest.raises(RequestRefused, match="Failed to find model"):
        await client.call("predict", "nowhere", QUESTION)


async def test_leaving_a_stream_early_ends_the_providers(client: Either) -> None:
    with background_provider([STREAM_HEAD, chunk(openai_delta("a")), Act.WAIT]) as provider:
        model_id = await client.model_at("openai-chat", provider.url)
        async with aclosing(client.stream(model_id, QUESTION)) as chunks:
            assert (await anext(chunks)).text == "a"
            assert not provider.disconnected.is_set()
        await eventually_async(provider.disconnected.is_set)


def embed(request: Request) -> Script:
    """A vector for each text: its length."""
    data = [{"index": index, "embedding": [float(len(text))]} for index, text in enumerate(request.json()["input"])]
    return json_response({"data": data})


async def test_several_texts_are_embedded_by_one_request_to_the_provider(client: Either) -> None:
    with background_provider(embed) as provider:
        model_id = await client.model_at("openai-embedding", provider.url)
        assert await client.call("embed", model_id, ["a", "bbb", "cc"]) == [[1.0], [3.0], [2.0]]
    assert len(provider.requests) == 1
