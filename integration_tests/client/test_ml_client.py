"""StreamingMLClient over real sockets: models made from blueprint files, predictions whole and streamed."""

from pathlib import Path
from typing import Any

import pytest
from integration_tests.support.background_provider import background_provider
from integration_tests.support.fake_provider import LAST_CHUNK, Request, Script, chunk, head, json_response
from opensearchpy import OpenSearch
from opensearchpy.exceptions import NotFoundError

from opensearch_ml_stream.client import StreamingMLClient
from opensearch_ml_stream.connectors.chunks import Chunk, Ending
from opensearch_ml_stream.connectors.wire_format import NDJSON

PARAMETERS = {"inputs": "hi"}
NOT_FOUND = {"error": {"type": "status_exception", "reason": "Failed to find model"}, "status": 404}
BLUEPRINT = """{
  "name": "b", "description": "d", "credential": {"key": "the key"},
  "connector": {"name": "c", "version": "1", "protocol": "http", "parameters": {"model": "<model>", "t": 1},
                "credential": {"key": "<key>"}, "actions": []}
}"""


@pytest.fixture
def blueprint(tmp_path: Path) -> Path:
    path = tmp_path / "b.json"
    path.write_text(BLUEPRINT)
    return path


def respond(request: Request) -> Script:
    responses: dict[tuple[str, str], Any] = {
        ("POST", "/_plugins/_ml/connectors/_create"): {"connector_id": "c/1"},
        ("DELETE", "/_plugins/_ml/connectors/c%2F1"): {"result": "deleted"},
        ("POST", "/_plugins/_ml/models/m1/_predict"): {"inference_results": []},
    }
    response = responses.get((request.method, request.path))
    return json_response(NOT_FOUND, 404) if response is None else json_response(response)


def test_a_model_is_made_from_a_blueprint_file(blueprint: Path) -> None:
    def and_registers(request: Request) -> Script:
        return json_response({"model_id": "m1"}) if request.path.endswith("/_register") else respond(request)

    with background_provider(and_registers) as provider:
        client = StreamingMLClient(OpenSearch(provider.url))
        made = client.create_model(blueprint, parameters={"model": "x"}, credential={"key": "k"}, name="mine")
        assert made == "m1"
    connector, model = (request.json() for request in provider.requests)
    assert connector["parameters"] == {"model": "x", "t": 1}
    assert (connector["credential"], connector["name"]) == ({"key": "k"}, "mine")
    assert model == {"name": "mine", "function_name": "remote", "connector_id": "c/1"}


def test_the_connector_of_a_model_that_cannot_be_registered_is_deleted(blueprint: Path) -> None:
    with background_provider(respond) as provider:
        client = StreamingMLClient(OpenSearch("http://localhost:1"), url=provider.url)
        with pytest.raises(NotFoundError):
            client.create_model(blueprint, parameters={"model": "x"}, credential={"key": "k"})
    assert provider.requests[-1].method == "DELETE"


def test_a_whole_prediction_is_one_object_and_a_stream_its_chunks() -> None:
    with background_provider(respond) as provider:
        assert StreamingMLClient(OpenSearch(provider.url)).predict("m1", PARAMETERS) == {"inference_results": []}
    stream: Script = [
        head(content_type="application/x-ndjson", transfer_encoding="chunked"),
        chunk(NDJSON.chunks([Chunk("a")]) + NDJSON.ending(Ending(), {})),
        LAST_CHUNK,
    ]
    with background_provider(stream) as provider:
        chunks = StreamingMLClient(OpenSearch(provider.url)).predict_stream("m1", PARAMETERS)
        assert [one.text for one in chunks] == ["a", ""]
