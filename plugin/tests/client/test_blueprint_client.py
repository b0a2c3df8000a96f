"""StreamingMLClient: connectors, models and predictions over a server in memory."""

import json
from typing import Any

import pytest
from opensearchpy import OpenSearch
from opensearchpy.connection import Urllib3HttpConnection
from opensearchpy.exceptions import RequestError

from opensearch_ml_stream.client import StreamingMLClient
from opensearch_ml_stream.connectors.chunks import Chunk as SentChunk
from opensearch_ml_stream.connectors.chunks import Ending
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.wire_format import NDJSON
from tests.client.in_memory_connections import InMemoryServer, Reply, Sent

BASE = "http://sidecar:9510/_plugins/_ml"


class Sidecar(InMemoryServer):
    """Responds by method and path; 400 to what it has no response for."""

    def __init__(self, responses: dict[tuple[str, str], Any]) -> None:
        super().__init__(Reply((b'{"error": {"type": "t", "reason": "no"}}',), 400, "application/json"))
        self.responses = responses

    def respond(self, request: Sent) -> Reply:
        refusal = super().respond(request)
        body = self.responses.get((request.method, request.url.removeprefix(BASE)))
        return refusal if body is None else Reply((json.dumps(body).encode(),), content_type="application/json")

    def client(self, host: str = "http://sidecar:9510", **options: Any) -> StreamingMLClient:
        connection_class = self.connection_class(Urllib3HttpConnection)
        return StreamingMLClient(OpenSearch(host, connection_class=connection_class), **options)


def test_a_connector_is_made_of_a_blueprint_with_its_values_filled_in() -> None:
    sidecar = Sidecar({("POST", "/connectors/_create"): {"connector_id": "c1"}})
    connector_id = sidecar.client().create_connector(
        "openai-chat", parameters={"model": "m"}, credential={"openAI_key": "k"}, name="mine"
    )
    assert connector_id == "c1"
    body = json.loads(sidecar.sent[0].body)
    assert (body["name"], body["parameters"]["model"], body["credential"]) == ("mine", "m", {"openAI_key": "k"})
    assert sidecar.sent[0].headers["accept"] == "application/json"


def test_a_missing_credential_is_named_before_anything_is_sent() -> None:
    sidecar = Sidecar({})
    with pytest.raises(InvalidRequest, match=r"needs the credential \[openAI_key\]"):
        sidecar.client().create_model("openai-chat")
    assert sidecar.sent == []


def test_a_model_is_registered_with_the_connector_that_was_made_for_it() -> None:
    sidecar = Sidecar(
        {("POST", "/connectors/_create"): {"connector_id": "c1"}, ("POST", "/models/_register"): {"model_id": "m1"}}
    )
    assert sidecar.client().create_model("openai-chat", credential={"openAI_key": "k"}) == "m1"
    body = json.loads(sidecar.sent[1].body)
    assert (body["connector_id"], body["function_name"]) == ("c1", "remote")


def test_the_connector_of_a_model_that_cannot_be_registered_is_deleted() -> None:
    sidecar = Sidecar({("POST", "/connectors/_create"): {"connector_id": "c/1"}, ("DELETE", "/connectors/c%2F1"): {}})
    with pytest.raises(RequestError):
        sidecar.client().create_model("openai-chat", credential={"openAI_key": "k"})
    assert [(sent.method, sent.url.removeprefix(BASE)) for sent in sidecar.sent] == [
        ("POST", "/connectors/_create"),
        ("POST", "/models/_register"),
        ("DELETE", "/connectors/c%2F1"),
    ]


def test_a_whole_prediction_is_the_servers_json() -> None:
    sidecar = Sidecar({("POST", "/models/m1/_predict"): {"inference_results": []}})
    assert sidecar.client().predict("m1", {"inputs": "hi"}) == {"inference_results": []}
    assert json.loads(sidecar.sent[0].body) == {"parameters": {"inputs": "hi"}}


def test_a_streamed_prediction_is_yielded_chunk_by_chunk() -> None:
    server = InMemoryServer(Reply((NDJSON.chunks([SentChunk("a")]), NDJSON.ending(Ending(), {}))))
    client = OpenSearch("http://sidecar:9510", connection_class=server.connection_class(Urllib3HttpConnection))
    assert [chunk.text for chunk in StreamingMLClient(client).predict_stream("m1", {"inputs": "hi"})] == ["a", ""]
    assert server.sent[0].url == f"{BASE}/models/m1/_predict/stream"


def test_every_request_goes_to_the_url_with_the_idle_timeout_if_they_are_given() -> None:
    sidecar = Sidecar({("POST", "/models/m1/_predict"): {}, ("POST", "/models/m1/_predict/stream"): {}})
    client = sidecar.client("http://cluster:9200", url="http://sidecar:9510", idle_timeout=9)
    client.predict("m1", {})
    client.predict_stream("m1", {}).close()
    with pytest.raises(RequestError):
        client.create_connector("openai-chat", credential={"openAI_key": "k"})
    assert {(sent.url.startswith(BASE), sent.read_timeout) for sent in sidecar.sent} == {(True, 9)}
