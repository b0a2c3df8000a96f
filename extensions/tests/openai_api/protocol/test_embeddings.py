"""Embeddings: what a request asks for, and the response to it."""

import base64
import json
import struct
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest, UpstreamError
from opensearch_ml_stream.extensions.openai_api.protocol.embeddings import (
    MAX_TEXTS,
    embeddings_response,
    read_embeddings_request,
)


def tensor(*values: float) -> dict[str, Any]:
    return {"name": "sentence_embedding", "data_type": "FLOAT32", "shape": [len(values)], "data": list(values)}


def prediction(*outputs: Any, **members: Any) -> dict[str, Any]:
    return {"inference_results": [{"output": list(outputs), "status_code": 200}], **members}


def response(said: Any) -> dict[str, Any]:
    return {"name": "response", "dataAsMap": said}


def test_a_request_has_its_texts_and_what_the_template_may_take() -> None:
    read = read_embeddings_request({"model": "m", "input": "a", "dimensions": 3, "user": "u", "encoding_format": None})
    assert (read.model, read.texts, read.is_base64, read.further) == (
        "m",
        ("a",),
        False,
        {"dimensions": 3, "user": "u"},
    )
    read = read_embeddings_request({"model": "m", "input": ["a", "b"], "encoding_format": "base64"})
    assert (read.texts, read.is_base64, read.further) == (("a", "b"), True, {})


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"input": "a"}, "model is missing"),
        ({"model": "m"}, "input must be a string, or an array"),
        ({"model": "m", "input": []}, "input must be a string, or an array"),
        ({"model": "m", "input": [1, 2]}, "input must be texts: tokens"),
        ({"model": "m", "input": [[1, 2]]}, "input must be texts: tokens"),
        ({"model": "m", "input": ["a", None]}, r"input\[1\] must be a string"),
        ({"model": "m", "input": ["a"] * (MAX_TEXTS + 1)}, "input must be no more than 2048 texts"),
        ({"model": "m", "input": "\ud800"}, r"input\[0\] must be a string without halves"),
        ({"model": "\ud800", "input": "a"}, "model must be a string without halves"),
        ({"model": "m", "input": "a", "encoding_format": "hex"}, "encoding_format must be"),
        ({"model": "m", "input": "a", "dimensions": "3"}, "dimensions must be an integer"),
    ],
)
def test_a_wrong_member_is_named(body: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidRequest, match=f"^{reason}"):
        read_embeddings_request(body)


def test_each_text_has_its_embedding_and_tokens_are_estimated_where_nobody_counted_them() -> None:
    request = read_embeddings_request({"model": "m", "input": ["four", "eightbyt"]})
    assert json.loads(embeddings_response(request, prediction(tensor(0.5, 1), tensor(2, 3)))) == {
        "object": "list",
        "data": [
            {"object": "embedding", "index": 0, "embedding": [0.5, 1]},
            {"object": "embedding", "index": 1, "embedding": [2, 3]},
        ],
        "model": "m",
        "usage": {"prompt_tokens": 3, "total_tokens": 3},
    }


def test_base64_holds_little_endian_floats_of_32_bits() -> None:
    request = read_embeddings_request({"model": "m", "input": "a", "encoding_format": "base64"})
    encoded = json.loads(embeddings_response(request, prediction(tensor(0.5, -2))))["data"][0]["embedding"]
    assert struct.unpack("<2f", base64.b64decode(encoded)) == (0.5, -2.0)


@pytest.mark.parametrize(
    ("said", "tokens"),
    [
        ({"data": [{"embedding": [1.5], "index": 0}], "usage": {"prompt_tokens": 7, "total_tokens": 7}}, 7),
        ({"embeddings": [[1.5]], "prompt_eval_count": 8}, 8),
        ({"embeddings": {"float": [[1.5]]}}, 1),
        ({"embedding": [1.5], "inputTextTokenCount": 9}, 9),
        ({"response": [[1.5]]}, 1),
    ],
)
def test_a_response_that_no_function_has_read_is_read_here(said: Any, tokens: int) -> None:
    request = read_embeddings_request({"model": "m", "input": "a"})
    body = json.loads(embeddings_response(request, prediction(response(said))))
    assert (body["data"][0]["embedding"], body["usage"]["prompt_tokens"]) == ([1.5], tokens)


def test_such_a_response_is_read_by_the_indexes_of_its_embeddings() -> None:
    request = read_embeddings_request({"model": "m", "input": ["a", "b"]})
    said = {"data": [{"embedding": [2.5], "index": 1}, {"embedding": [1.5], "index": 0}]}
    body = json.loads(embeddings_response(request, prediction(response(said))))
    assert [row["embedding"] for row in body["data"]] == [[1.5], [2.5]]
    said["data"][0]["index"] = 0
    with pytest.raises(UpstreamError, match="more than once"):
        embeddings_response(request, prediction(response(said)))


@pytest.mark.parametrize(
    "outputs",
    [
        [tensor(1.0), tensor(2.0)],
        [],
        [response({"choices": []})],
        [response({"data": [{"embedding": "AAA="}]})],
        [response([1])],
        [{"name": "response", "data": ["a"]}],
    ],
)
def test_a_response_without_an_embedding_for_each_text_is_the_model_s_fault(outputs: list[Any]) -> None:
    request = read_embeddings_request({"model": "m", "input": "a"})
    with pytest.raises(UpstreamError, match="embeddings"):
        embeddings_response(request, prediction(*outputs))


def test_numbers_beyond_32_bits_are_the_model_s_fault() -> None:
    request = read_embeddings_request({"model": "m", "input": "a", "encoding_format": "base64"})
    with pytest.raises(UpstreamError, match="32-bit"):
        embeddings_response(request, prediction(tensor(1e300)))


def test_the_model_that_answered_in_another_s_place_is_named() -> None:
    request = read_embeddings_request({"model": "m", "input": "a"})
    body = json.loads(embeddings_response(request, prediction(tensor(1), model_id="m2")))
    assert body["opensearch_ml_stream"] == {"model_id": "m2"}
