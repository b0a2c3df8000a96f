"""The core of both clients: what is sent to the sidecar, what its responses hold, and a connection to its url."""

from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from opensearchpy.exceptions import ImproperlyConfigured

from opensearch_ml_stream.client.errors import RequestRefused, SidecarError
from opensearch_ml_stream.client.use_cases import (
    Access,
    Operation,
    UseCase,
    create_connector,
    create_model,
    embed,
    json_object,
    predict,
    streamed_prediction,
)

CREDENTIAL = {"openAI_key": "k"}


def transport(hosts: list[dict[str, Any]], **kwargs: Any) -> Any:
    return SimpleNamespace(hosts=hosts, kwargs=kwargs)


def result_of(use_case: UseCase[Any], response: dict[str, Any]) -> Any:
    """What a use case of one request returns for its response."""
    next(use_case)
    with pytest.raises(StopIteration) as ended:
        use_case.send(response)
    return ended.value.value


@pytest.mark.parametrize(
    ("operation", "path"),
    [
        (streamed_prediction("a/b", {}), "/models/a%2Fb/_predict/stream"),
        (next(predict("a/b", {})), "/models/a%2Fb/_predict"),
        (next(embed("a/b", [], {})), "/_predict/text_embedding/a%2Fb"),
    ],
)
def test_an_id_is_one_segment_of_the_path_whatever_it_holds(operation: Operation, path: str) -> None:
    assert operation.full_path == f"/_plugins/_ml{path}"


def test_parameters_and_texts_are_sent_as_json() -> None:
    assert orjson.loads(next(predict("m", {"inputs": "é"})).content()) == {"parameters": {"inputs": "é"}}
    assert orjson.loads(next(embed("m", ["a", "b"], None)).content()) == {"text_docs": ["a", "b"]}
    with pytest.raises(TypeError, match="texts is a list of texts, not one text"):
        next(embed("m", "kitten", None))
    typed = {"text_docs": ["a"], "parameters": {"input_type": "query"}}
    assert orjson.loads(next(embed("m", ("a",), {"input_type": "query"})).content()) == typed


def test_a_connector_is_made_of_a_blueprint_with_its_values_filled_in() -> None:
    making = create_connector("openai-chat", {"model": "m"}, CREDENTIAL, "mine")
    body = next(making).body or {}
    assert (body["name"], body["parameters"]["model"], body["credential"]) == ("mine", "m", CREDENTIAL)


def test_a_model_is_registered_with_the_connector_that_was_made_for_it() -> None:
    making = create_model("openai-chat", None, CREDENTIAL, "mine")
    assert next(making).path == "/connectors/_create"
    body = making.send({"connector_id": "c1"}).body or {}
    assert (body["name"], body["connector_id"], body["function_name"]) == ("mine", "c1", "remote")


@pytest.mark.parametrize(
    ("blueprint", "status", "reason"),
    [("openai-chat", 400, r"needs the credential \[openAI_key\]"), ("openai-chatt", 404, "did you mean openai-chat")],
)
def test_what_a_blueprint_lacks_is_named_before_anything_is_sent(blueprint: str, status: int, reason: str) -> None:
    with pytest.raises(RequestRefused, match=reason) as raised:
        next(create_model(blueprint, None, None, None))
    assert raised.value.status == status


@pytest.mark.parametrize(
    ("response", "vectors"),
    [
        ({"inference_results": [{"output": [{"data": [1.0]}, {"data": [2.0]}]}]}, [[1.0], [2.0]]),
        ({"inference_results": [{"output": [{"data": [1.0]}]}, {"output": [{"data": [2.0]}]}]}, [[1.0], [2.0]]),
        ({"inference_results": []}, []),
    ],
)
def test_embeddings_come_in_the_order_of_their_texts(response: dict[str, Any], vectors: list[list[float]]) -> None:
    assert result_of(embed("m", ["a"] * len(vectors), None), response) == vectors


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        ({"inference_results": [{"output": [{"data": [1.0]}]}]}, "holds 1 embeddings, 2 were requested"),
        ({}, "is it a model for embeddings"),
        ({"inference_results": [{"output": [{"dataAsMap": {}}]}]}, "is it a model for embeddings"),
    ],
)
def test_a_response_without_an_embedding_for_each_text_is_an_error(response: dict[str, Any], reason: str) -> None:
    embedding = embed("m", ["a", "b"], None)
    next(embedding)
    with pytest.raises(SidecarError, match=reason):
        embedding.send(response)


@pytest.mark.parametrize("content", [b"", b"<html>", b"[1]", b"\xff"])
def test_a_response_that_is_no_json_object_is_an_error_that_does_not_repeat_it(content: bytes) -> None:
    with pytest.raises(SidecarError, match="is it the sidecar"):
        json_object(content)


def test_a_connection_to_the_sidecar_has_the_clients_login_and_headers_but_not_its_host_or_prefix() -> None:
    hosts = [{"host": "cluster", "port": 9200, "http_auth": "me:pass", "use_ssl": True, "url_prefix": "os"}]
    options = Access("http://sidecar:9510").connection_options(transport(hosts, headers={"x": "y"}, scheme="https"))
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
    assert Access(url).connection_options(transport([])) == expected


@pytest.mark.parametrize(("url", "scheme"), [("sidecar:9510", "sidecar"), ("", "empty"), ("http://", "http")])
def test_a_url_that_is_not_one_of_http_is_refused_without_repeating_it(url: str, scheme: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=rf"must be http\(s\)://host\[:port\], not {scheme}"):
        Access(url).connection_options(transport([]))
