"""What is sent to the sidecar, what its responses hold, and a connection to its url."""

from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from opensearchpy.exceptions import ImproperlyConfigured

from opensearch_ml_stream.client.errors import SidecarError
from opensearch_ml_stream.client.operations import (
    Operation,
    connection_options,
    connector_deletion,
    embedding,
    embeddings_in,
    json_object,
    prediction,
    streamed_prediction,
)


def transport(hosts: list[dict[str, Any]], **kwargs: Any) -> Any:
    return SimpleNamespace(hosts=hosts, kwargs=kwargs)


@pytest.mark.parametrize(
    ("operation", "path"),
    [
        (streamed_prediction("a/b", {}), "/models/a%2Fb/_predict/stream"),
        (prediction("a/b", {}), "/models/a%2Fb/_predict"),
        (embedding("a/b", [], {}), "/_predict/text_embedding/a%2Fb"),
        (connector_deletion("a/b"), "/connectors/a%2Fb"),
    ],
)
def test_an_id_is_one_segment_of_the_path_whatever_it_holds(operation: Operation, path: str) -> None:
    assert operation.full_path == f"/_plugins/_ml{path}"


def test_parameters_and_texts_are_sent_as_json() -> None:
    assert orjson.loads(prediction("m", {"inputs": "é"}).content()) == {"parameters": {"inputs": "é"}}
    assert orjson.loads(embedding("m", ["a", "b"], {}).content()) == {"text_docs": ["a", "b"]}
    with pytest.raises(TypeError, match="texts is a list of texts, not one text"):
        embedding("m", "kitten", {})
    typed = {"text_docs": ["a"], "parameters": {"input_type": "query"}}
    assert orjson.loads(embedding("m", ("a",), {"input_type": "query"}).content()) == typed


@pytest.mark.parametrize(
    ("response", "vectors"),
    [
        ({"inference_results": [{"output": [{"data": [1.0]}, {"data": [2.0]}]}]}, [[1.0], [2.0]]),
        ({"inference_results": [{"output": [{"data": [1.0]}]}, {"output": [{"data": [2.0]}]}]}, [[1.0], [2.0]]),
        ({"inference_results": []}, []),
    ],
)
def test_embeddings_come_in_the_order_of_their_texts(response: dict[str, Any], vectors: list[list[float]]) -> None:
    assert embeddings_in(response, len(vectors)) == vectors


def test_fewer_embeddings_than_texts_are_an_error_since_nobody_knows_whose_they_are() -> None:
    with pytest.raises(SidecarError, match="holds 1 embeddings, 2 were requested"):
        embeddings_in({"inference_results": [{"output": [{"data": [1.0]}]}]}, 2)


@pytest.mark.parametrize("response", [{}, {"inference_results": [{"output": [{"dataAsMap": {}}]}]}])
def test_a_response_without_embeddings_is_an_error(response: dict[str, Any]) -> None:
    with pytest.raises(SidecarError, match="is it a model for embeddings"):
        embeddings_in(response, 1)


@pytest.mark.parametrize("content", [b"", b"<html>", b"[1]", b"\xff"])
def test_a_response_that_is_no_json_object_is_an_error_that_does_not_repeat_it(content: bytes) -> None:
    with pytest.raises(SidecarError, match="is it the sidecar"):
        json_object(content)


def test_a_connection_to_the_sidecar_has_the_clients_login_and_headers_but_not_its_host_or_prefix() -> None:
    hosts = [{"host": "cluster", "port": 9200, "http_auth": "me:pass", "use_ssl": True, "url_prefix": "os"}]
    options = connection_options(transport(hosts, headers={"x": "y"}, scheme="https"), "http://sidecar:9510")
    assert options == {"host": "sidecar", "port": 9510, "http_auth": "me:pass", "headers": {"x": "y"}}


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://sidecar", {"host": "sidecar", "port": 80}),
        ("https://sidecar", {"host": "sidecar", "port": 443, "use_ssl": True}),
        ("http://sidecar:1/a/b", {"host": "sidecar", "port": 1, "url_prefix": "/a/b"}),
        ("http://sidecar:1/", {"host": "sidecar", "port": 1}),
        ("http://a%40b:p%3Aw@[::1]:1", {"host": "::1", "port": 1, "http_auth": ("a@b", "p:w")}),
        ("http://me@sidecar:1", {"host": "sidecar", "port": 1, "http_auth": ("me", "")}),
    ],
)
def test_the_sidecars_url_gives_host_port_tls_prefix_and_login(url: str, expected: dict[str, Any]) -> None:
    assert connection_options(transport([]), url) == expected


@pytest.mark.parametrize(("url", "scheme"), [("sidecar:9510", "sidecar"), ("", "empty"), ("http://", "http")])
def test_a_url_that_is_not_one_of_http_is_refused_without_repeating_it(url: str, scheme: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=rf"must be http\(s\)://host\[:port\], not {scheme}"):
        connection_options(transport([]), url)
