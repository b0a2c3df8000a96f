"""Both clients for models: connectors, models, predictions and embeddings over a server in memory."""

import json
from collections.abc import AsyncIterator, Iterator
from inspect import isawaitable
from typing import Any, cast

import pytest
from opensearchpy import AIOHttpConnection, AsyncOpenSearch, OpenSearch
from opensearchpy.connection import Urllib3HttpConnection

from opensearch_ml_stream.client import (
    AsyncStreamingMLClient,
    Chunk,
    RequestRefused,
    SidecarError,
    StreamingMLClient,
)
from opensearch_ml_stream.connectors.chunks import Chunk as SentChunk
from opensearch_ml_stream.connectors.chunks import Ending
from opensearch_ml_stream.connectors.wire_format import NDJSON
from tests.client.in_memory_connections import InMemoryServer, Reply, Sent

BASE = "http://sidecar:9510/_plugins/_ml"
BOTH = pytest.mark.parametrize("kind", [StreamingMLClient, AsyncStreamingMLClient])
Kind = type[StreamingMLClient] | type[AsyncStreamingMLClient]
STREAM = NDJSON.chunks([SentChunk("a")]) + NDJSON.ending(Ending(), {})


class Sidecar(InMemoryServer):
    """Responds by method and path, with a reply or bytes as they are, or JSON; 400 to what it has no response for."""

    def __init__(self, responses: dict[tuple[str, str], Any]) -> None:
        super().__init__(Reply((b'{"error": {"type": "t", "reason": "no"}}',), 400, "application/json"))
        self.responses = responses

    def respond(self, request: Sent) -> Reply:
        refusal = super().respond(request)
        body = self.responses.get((request.method, request.url.removeprefix(BASE)))
        if body is None or isinstance(body, Reply):
            return body or refusal
        return Reply((body if isinstance(body, bytes) else json.dumps(body).encode(),))

    def client(self, kind: Kind, host: str = "http://sidecar:9510", **options: Any) -> Any:
        if kind is StreamingMLClient:
            return kind(OpenSearch(host, connection_class=self.connection_class(Urllib3HttpConnection)), **options)
        over = AsyncOpenSearch(host, connection_class=self.connection_class(AIOHttpConnection))
        return cast(type[AsyncStreamingMLClient], kind)(over, **options)


async def result_of(value: Any) -> Any:
    return await value if isawaitable(value) else value


async def chunks_of(stream: Iterator[Chunk] | AsyncIterator[Chunk]) -> list[Chunk]:
    return list(stream) if isinstance(stream, Iterator) else [chunk async for chunk in stream]


@BOTH
async def test_a_connector_is_made_of_a_blueprint_with_its_values_filled_in(kind: Kind) -> None:
    sidecar = Sidecar({("POST", "/connectors/_create"): {"connector_id": "c1"}})
    made = sidecar.client(kind).create_connector(
        "openai-chat", parameters={"model": "m"}, credential={"openAI_key": "k"}, name="mine"
    )
    assert await result_of(made) == "c1"
    body = json.loads(sidecar.sent[0].body)
    assert (body["name"], body["parameters"]["model"], body["credential"]) == ("mine", "m", {"openAI_key": "k"})
    assert sidecar.sent[0].headers["accept"] == "application/json"


@BOTH
@pytest.mark.parametrize(
    ("blueprint", "status", "reason"),
    [("openai-chat", 400, r"needs the credential \[openAI_key\]"), ("openai-chatt", 404, "did you mean openai-chat")],
)
async def test_what_a_blueprint_lacks_is_named_before_anything_is_sent(
    kind: Kind, blueprint: str, status: int, reason: str
) -> None:
    sidecar = Sidecar({})
    with pytest.raises(RequestRefused, match=reason) as raised:
        await result_of(sidecar.client(kind).create_model(blueprint))
    assert (raised.value.status, sidecar.sent) == (status, [])


@BOTH
async def test_a_model_is_registered_with_the_connector_that_was_made_for_it(kind: Kind) -> None:
    sidecar = Sidecar(
        {("POST", "/connectors/_create"): {"connector_id": "c1"}, ("POST", "/models/_register"): {"model_id": "m1"}}
    )
    assert await result_of(sidecar.client(kind).create_model("openai-chat", credential={"openAI_key": "k"})) == "m1"
    body = json.loads(sidecar.sent[1].body)
    assert (body["connector_id"], body["function_name"]) == ("c1", "remote")


@BOTH
@pytest.mark.parametrize("deleted", [{("DELETE", "/connectors/c%2F1"): {}}, {}], ids=["deleted", "not deleted"])
async def test_the_connector_of_a_model_that_cannot_be_registered_is_deleted(
    kind: Kind, deleted: dict[tuple[str, str], Any]
) -> None:
    refusal = Reply((b'{"error": {"type": "t", "reason": "no such group"}}',), 400)
    made = {("POST", "/connectors/_create"): {"connector_id": "c/1"}, ("POST", "/models/_register"): refusal}
    sidecar = Sidecar({**made, **deleted})
    with pytest.raises(RequestRefused, match="no such group"):
        await result_of(sidecar.client(kind).create_model("openai-chat", credential={"openAI_key": "k"}))
    assert [(sent.method, sent.url.removeprefix(BASE)) for sent in sidecar.sent] == [
        ("POST", "/connectors/_create"),
        ("POST", "/models/_register"),
        ("DELETE", "/connectors/c%2F1"),
    ]


@BOTH
async def test_a_whole_prediction_is_the_servers_json(kind: Kind) -> None:
    sidecar = Sidecar({("POST", "/models/m1/_predict"): {"inference_results": []}})
    assert await result_of(sidecar.client(kind).predict("m1", {"inputs": "hi"})) == {"inference_results": []}
    assert json.loads(sidecar.sent[0].body) == {"parameters": {"inputs": "hi"}}
    assert sidecar.open_responses == 0


@BOTH
async def test_a_whole_response_that_is_not_the_sidecars_is_an_error(kind: Kind) -> None:
    sidecar = Sidecar({("POST", "/models/m1/_predict"): b"<html>"})
    with pytest.raises(SidecarError, match="is it the sidecar"):
        await result_of(sidecar.client(kind).predict("m1", {}))
    assert sidecar.open_responses == 0


@BOTH
async def test_several_texts_are_embedded_by_one_request(kind: Kind) -> None:
    results = [{"output": [{"data": [1.0, 0.0]}, {"data": [0.0, 1.0]}]}]
    sidecar = Sidecar({("POST", "/_predict/text_embedding/m1"): {"inference_results": results}})
    assert await result_of(sidecar.client(kind).embed("m1", ["a", "b"])) == [[1.0, 0.0], [0.0, 1.0]]
    assert [json.loads(sent.body) for sent in sidecar.sent] == [{"text_docs": ["a", "b"]}]


@BOTH
async def test_a_streamed_prediction_is_yielded_chunk_by_chunk(kind: Kind) -> None:
    sidecar = Sidecar({("POST", "/models/m1/_predict/stream"): STREAM})
    chunks = await chunks_of(sidecar.client(kind).predict_stream("m1", {"inputs": "hi"}))
    assert [(chunk.text, chunk.is_last) for chunk in chunks] == [("a", False), ("", True)]
    assert sidecar.sent[0].headers["accept"].startswith("application/x-ndjson")


@BOTH
async def test_every_request_goes_to_the_url_with_the_key_and_the_idle_timeout_if_they_are_given(kind: Kind) -> None:
    paths = ["/models/m1/_predict", "/_predict/text_embedding/m1"]
    empty = {"inference_results": list[Any]()}
    sidecar = Sidecar({("POST", "/models/m1/_predict/stream"): STREAM, **{("POST", path): empty for path in paths}})
    client = sidecar.client(kind, "http://cluster:9200", url="http://sidecar:9510", idle_timeout=9, api_key="k1")
    await result_of(client.predict("m1", {}))
    await result_of(client.embed("m1", []))
    await chunks_of(client.predict_stream("m1", {}))
    with pytest.raises(RequestRefused):
        await result_of(client.create_connector("openai-chat", credential={"openAI_key": "k"}))
    seen = [(sent.url.startswith(BASE), sent.headers["authorization"], sent.read_timeout) for sent in sidecar.sent]
    assert seen == [(True, "Bearer k1", 9)] * 4
