"""From a provider's response to tensors."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opensearch_ml_stream.connectors.documents import Action
from opensearch_ml_stream.connectors.errors import InvalidRequest, UpstreamError
from opensearch_ml_stream.connectors.predict import tensors
from opensearch_ml_stream.connectors.predict.painless import PainlessCall
from opensearch_ml_stream.connectors.predict.post_process import check, read_response, read_script_result
from tests.providers.eventstream_frames import event

_VECTORS = [[0.25, -1], [3, 4.5]]


def _action(function: str | None = None) -> Action:
    return Action("PREDICT", "POST", "http://provider/v1", post_process_function=function)


def _built_in(name: str, response: object, **parameters: str) -> Any:
    return read_response(_action(f"connector.post_process.{name}"), parameters, json.dumps(response).encode())


def _default(body: bytes, **parameters: str) -> Any:
    return read_response(_action(), parameters, body)


def _embedding(vector: list[float], data_type: str = "FLOAT32") -> dict[str, object]:
    return {"name": "sentence_embedding", "data_type": data_type, "shape": [len(vector)], "data": vector}


@pytest.mark.parametrize("function", [None, "connector.post_process.default.embedding", "return 'x';"])
@pytest.mark.parametrize(
    "body", [b"[" * 980 + b"]" * 980, b"[" * 201 + b"]" * 201, b"[" * 5_000, b'{"a":' + b"1" * 5_000 + b"}", b"[1e400]"]
)
def test_json_that_cannot_be_passed_on_is_the_providers_fault(function: str | None, body: bytes) -> None:
    with pytest.raises(UpstreamError, match=r"response is (not JSON|JSON of more than 200 levels)") as raised:
        read_response(_action(function), {}, body)
    assert raised.value.status == 424


@pytest.mark.parametrize(
    "body",
    [
        b'{"response":"a","done":false}\n{"response":"b","done":true}\n',
        b'\xef\xbb\xbf{"a":1}\r\n\r\n{"a":2}',
        b'data: {"choices":[]}\n\ndata: [DONE]\n\n',
        b"event: ping\ndata: {}\n\n",
        b": ping\n\n",
        event("chunk", b'{"bytes":"e30="}'),
    ],
)
def test_a_stream_in_place_of_a_whole_response_is_named_as_such(body: bytes) -> None:
    with pytest.raises(UpstreamError, match=r'a stream of events where one JSON object .* \("stream": false') as raised:
        read_response(_action(), {}, body)
    assert raised.value.status == 424


@pytest.mark.parametrize("body", [b"{} x", b'{"a":1', b'{"a":1}{"b":2}', b"<html>\n</html>", b"dataset", b"\x00" * 40])
def test_what_is_no_stream_is_not_named_as_one(body: bytes) -> None:
    with pytest.raises(UpstreamError, match="is not JSON: "):
        read_response(_action(), {}, body)


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b'\xef\xbb\xbf{"a":"b\xff\\ud83d","c":[NaN,-Infinity]}', {"a": "b\ufffd\ufffd", "c": [None, None]}),
        (b'{"a":"b\nc"}', {"a": "b\nc"}),
    ],
)
def test_what_is_not_quite_json_is_read_as_it_is_meant(body: bytes, value: dict[str, object]) -> None:
    assert _default(body) == [{"name": "response", "dataAsMap": value}]
    assert _default(body, response_filter="$.a") == [{"name": "response", "dataAsMap": {"response": value["a"]}}]
    processors = '[{"type":"jsonpath_filter","path":"$.a"}]'
    assert _default(body, output_processors=processors) == [{"name": "response", "dataAsMap": {"response": value["a"]}}]


@pytest.mark.parametrize("result", ["[" * 980 + "]" * 980, "[" * 100_000, "[" + "1" * 5_000 + "]"])
def test_a_script_may_not_return_what_cannot_be_passed_on(result: str) -> None:
    with pytest.raises(InvalidRequest, match="returned JSON that cannot be read"):
        read_script_result({}, b"{}", result)


@pytest.mark.parametrize(
    ("name", "response", "data_type"),
    [
        ("openai.embedding", {"data": [{"embedding": vector} for vector in _VECTORS]}, "FLOAT32"),
        ("cohere.embedding", {"embeddings": _VECTORS}, "FLOAT32"),
        ("cohere_v2.embedding.float", {"embeddings": {"float": _VECTORS}}, "FLOAT32"),
        ("cohere_v2.embedding.int8", {"embeddings": {"int8": _VECTORS}}, "INT8"),
        ("cohere_v2.embedding.uint8", {"embeddings": {"uint8": _VECTORS}}, "UINT8"),
        ("cohere_v2.embedding.binary", {"embeddings": {"binary": _VECTORS}}, "BINARY"),
        ("cohere_v2.embedding.ubinary", {"embeddings": {"ubinary": _VECTORS}}, "UBINARY"),
        ("default.embedding", _VECTORS, "FLOAT32"),
        ("bedrock.nova.embedding", {"embeddings": [{"embedding": vector} for vector in _VECTORS]}, "FLOAT32"),
    ],
)
def test_each_embedding_function_finds_the_vectors_in_order(name: str, response: object, data_type: str) -> None:
    assert _built_in(name, response) == [_embedding(vector, data_type) for vector in _VECTORS]


@pytest.mark.parametrize(
    ("name", "response", "data_type"),
    [
        ("bedrock.embedding", {"embedding": [1, 2]}, "FLOAT32"),
        ("bedrock_v2.embedding.float", {"embeddingsByType": {"float": [1, 2]}}, "FLOAT32"),
        ("bedrock_v2.embedding.binary", {"embeddingsByType": {"binary": [1, 2]}}, "BINARY"),
    ],
)
def test_bedrock_responds_with_one_vector(name: str, response: object, data_type: str) -> None:
    assert _built_in(name, response) == [_embedding([1, 2], data_type)]


def test_a_tensors_keys_stand_in_the_order_of_the_rest_api() -> None:
    assert list(_built_in("cohere.embedding", {"embeddings": [[1]]})[0]) == ["name", "data_type", "shape", "data"]
    assert list(tensors.of_rest({"dataAsMap": {"a": 1}, "other": 1, "shape": [1], "name": "n"})) == [
        "name",
        "shape",
        "dataAsMap",
    ]


@pytest.mark.parametrize(
    ("name", "response"),
    [
        ("cohere.rerank", {"results": [{"index": 1, "relevance_score": 0.9}, {"index": 0, "relevance_score": 0.1}]}),
        ("bedrock.rerank", {"results": [{"index": 1, "relevanceScore": 0.9}, {"index": 0, "relevanceScore": 0.1}]}),
        ("default.rerank", [{"index": 1, "score": 0.9}, {"index": 0, "score": 0.1}]),
    ],
)
def test_rerank_scores_come_back_in_the_order_of_the_documents(name: str, response: object) -> None:
    similarity = {"name": "similarity", "data_type": "FLOAT32", "shape": [1]}
    assert _built_in(name, response) == [{**similarity, "data": [0.1]}, {**similarity, "data": [0.9]}]


@given(st.permutations(range(8)))
def test_any_order_of_scores_comes_back_as_the_order_of_the_documents(order: list[int]) -> None:
    response = {"results": [{"index": index, "relevance_score": index / 8} for index in order]}
    assert [tensor["data"] for tensor in _built_in("cohere.rerank", response)] == [[n / 8] for n in range(8)]


def test_a_bedrock_jobs_arn_is_also_given_as_it_stands_in_a_url() -> None:
    (tensor,) = _built_in("bedrock.batch_job_arn", {"jobArn": "arn:aws:bedrock:x:1:job/a/b"})
    expected = {"jobArn": "arn:aws:bedrock:x:1:job/a/b", "processedJobArn": "arn:aws:bedrock:x:1:job%2Fa%2Fb"}
    assert tensor == {"name": "response", "dataAsMap": expected}


def test_the_answer_of_another_ml_commons_passes_through() -> None:
    inner = [{"name": "output", "dataAsMap": {"response": [{"a": 1.5}]}}]
    response = {"inference_results": [{"output": inner, "status_code": 200}]}
    assert _built_in("mlcommons.passthrough", response) == inner
    assert _built_in("mlcommons.passthrough", {"a": 1}) == [{"name": "response", "dataAsMap": {"a": 1}}]


_DEEP = b"[" * 60 + b"1" + b"]" * 60


@pytest.mark.parametrize(
    "parameters",
    [
        {"response_filter": "$..*..*..*..*..*"},
        {"output_processors": '[{"type":"jsonpath_filter","path":"$..*..*..*..*..*"}]'},
        {"response_filter": "$", "output_processors": '[{"type":"remove_jsonpath","path":"$..*..*..*..*"}]'},
    ],
)  # fmt: skip
def test_a_response_that_takes_too_much_work_is_the_providers_failure(parameters: dict[str, str]) -> None:
    with pytest.raises(UpstreamError, match="takes more than 50000 steps of work") as caught:
        _default(_DEEP, **parameters)
    assert caught.value.status == 424
    if "output_processors" not in parameters:
        with pytest.raises(UpstreamError, match="takes more than"):
            read_response(_action("connector.post_process.openai.embedding"), parameters, _DEEP)


def test_a_response_filter_replaces_the_path_of_a_built_in_function_and_says_the_type() -> None:
    response = {"deep": {"int8": [[1, 2]]}}
    assert _built_in("openai.embedding", response, response_filter="$.deep.int8") == [_embedding([1, 2], "INT8")]


@pytest.mark.parametrize(
    ("name", "response", "reason"),
    [
        ("openai.embedding", {"error": "no"}, r"nothing at \[\$\.data\[\*\]\.embedding\]"),
        ("openai.embedding", {"data": [{"embedding": "AAAA"}]}, "non-empty List containing Float values"),
        ("cohere.embedding", {"embeddings": [[1], []]}, "non-empty List containing Float values"),
        ("cohere.embedding", {"embeddings": {"float": []}}, "non-empty List containing Float values"),
        ("cohere.rerank", {"results": "x"}, "not a List"),
        ("cohere.rerank", {"results": [{"index": 0}]}, "should contain index and relevance_score"),
        ("cohere.rerank", {"results": [{"index": 4, "relevance_score": 1}]}, "does not score every document"),
        ("cohere.rerank", {"results": [{"index": 0, "relevance_score": 1}] * 2}, "more than once"),
        ("cohere.rerank", {"results": [{"index": False, "relevance_score": 1}]}, "should contain index"),
        ("bedrock.batch_job_arn", {}, "job arn is missing"),
    ],
)
def test_a_response_that_a_function_cannot_read_is_the_providers_fault(
    name: str, response: object, reason: str
) -> None:
    with pytest.raises(UpstreamError, match=reason) as caught:
        _built_in(name, response)
    assert caught.value.status == 424


def test_a_misspelt_built_in_function_is_named_with_those_that_there_are() -> None:
    with pytest.raises(InvalidRequest, match=r"no built-in post_process_function \[.*opnai.*connector\.post_process"):
        _built_in("opnai.embedding", {})


@pytest.mark.parametrize(
    ("function", "parameters", "reason"),
    [
        ("connector.post_process.opnai.embedding", {}, "no built-in post_process_function"),
        ("connector.post_process.openai.embedding", {"response_filter": "$["}, "is not a JSONPath"),
        (None, {"response_filter": "$" + ".a" * 5000}, "A JSONPath may have 2000 characters; this one has 10001"),
        (None, {"output_processors": "["}, "output_processors is not JSON"),
        (None, {"output_processors": " " * 100_001}, "output_processors may have 100000 characters"),
    ],
)
def test_what_cannot_work_is_refused_before_the_provider_is_paid(
    function: str | None, parameters: dict[str, str], reason: str
) -> None:
    with pytest.raises(InvalidRequest, match=reason):
        check(_action(function), parameters)


def test_what_can_work_passes_the_check() -> None:
    check(_action(), {})
    check(_action("return 1;"), {"response_filter": "$.a"})
    check(_action("connector.post_process.openai.embedding"), {"output_processors": "["})


def test_a_response_that_is_no_json_is_the_providers_fault_and_is_not_repeated() -> None:
    with pytest.raises(UpstreamError, match=r"The provider's response is not JSON: .* at line 1, column") as caught:
        _default(b"<html>secret</html>")
    assert "secret" not in caught.value.reason


@pytest.mark.parametrize(
    ("body", "parameters", "data_as_map"),
    [
        (b'{"id": 1, "choices": []}', {}, {"id": 1, "choices": []}),
        (b"[1, 2]", {}, {"response": [1, 2]}),
        (b'{"a": {"b": 1}}', {"response_filter": "$.a"}, {"b": 1}),
        (b'{"a": "text"}', {"response_filter": "$.a"}, {"response": "text"}),
        (b'{"a": 7}', {"response_filter": "$.a"}, {"response": 7}),
        (b'{"a": [1]}', {"response_filter": "$.a"}, {"response": [1]}),
        (b'{"a": "{\\"b\\": 1}"}', {"response_filter": "$.a"}, {"b": 1}),
        (b'{"a": "[1, 2]"}', {"response_filter": "$.a"}, {"response": [1, 2]}),
        (b'{"a": "{b"}', {"response_filter": "$.a"}, {"response": "{b"}),
        (b'{"a": null}', {"response_filter": "$.a"}, {"response": None}),
        (b'{"a": [1]}', {"response_filter": "$.a[*].gone"}, {"response": []}),
        (b'{"a": 1}', {"response_filter": ""}, {"a": 1}),
        (b'{"a": 1}', {"response_filter": "$"}, {"a": 1}),
    ],
)
def test_without_a_function_the_filtered_answer_is_data_as_map(
    body: bytes, parameters: dict[str, str], data_as_map: object
) -> None:
    assert _default(body, **parameters) == [{"name": "response", "dataAsMap": data_as_map}]


@pytest.mark.parametrize("processors", [{}, {"output_processors": '[{"type": "to_string"}]'}])
@pytest.mark.parametrize("path", ["$.gone", "$.a[3]", "$.a[0].b", "$.error.message"])
def test_a_response_filter_without_a_match_names_its_path(path: str, processors: dict[str, str]) -> None:
    with pytest.raises(UpstreamError) as caught:
        _default(b'{"a": ["secret"]}', response_filter=path, **processors)
    assert caught.value.status == 424
    assert caught.value.reason == f"The provider's response has nothing at [{path}], the response_filter"


def test_output_processors_work_on_the_filtered_response() -> None:
    processors = '[{"type": "regex_replace", "pattern": "l+", "replacement": "L"}]'
    parameters = {"response_filter": "$.a", "output_processors": processors}
    assert _default(b'{"a": "hello"}', **parameters) == [{"name": "response", "dataAsMap": {"response": "heLo"}}]


def test_output_processors_see_the_whole_answer_as_the_provider_wrote_it() -> None:
    processors = '[{"type": "regex_capture", "pattern": "(1\\\\.0E2)"}]'
    assert _default(b'{"a":  1.0E2}', output_processors=processors)[0]["dataAsMap"] == {"response": "1.0E2"}


# Painless


def test_a_script_gets_the_answer_as_params_and_an_array_as_result() -> None:
    assert read_response(_action("return 1;"), {}, b'{"a": [1]}') == PainlessCall("return 1;", {"a": [1]})
    assert read_response(_action("return 1;"), {}, b"[1]") == PainlessCall("return 1;", {"result": [1]})


def test_a_placeholder_in_a_script_becomes_a_literal() -> None:
    call = read_response(_action("return ${parameters.x};"), {"x": 'a"'}, b"{}")
    assert isinstance(call, PainlessCall)
    assert call.source == 'return "a\\"";'


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (
            '{"name": "sentence_embedding", "data_type": "FLOAT32", "shape": [2], "data": [1, 2]}',
            [_embedding([1, 2])],
        ),
        (
            '[{"name": "a", "data": [1]}, {"name": "b", "result": "r"}]',
            [{"name": "a", "data": [1]}, {"name": "b", "result": "r"}],
        ),
        ('{"name": "response", "dataAsMap": {"a": "tab\there"}}', [tensors.response({"a": "tab\there"})]),
        ('{"answer": 1}', [tensors.response({"answer": 1})]),
        ("[1, 2]", [tensors.response({"response": 1}), tensors.response({"response": 2})]),
        ("plain text", [tensors.response({"response": "plain text"})]),
        ("7", [tensors.response({"response": "7"})]),
        (None, [tensors.response({"raw": 1})]),
    ],
)
def test_what_a_script_returns_becomes_tensors(result: str | None, expected: object) -> None:
    assert read_script_result({}, b'{"raw": 1}', result) == expected


def test_a_response_filter_reads_what_a_script_returned() -> None:
    assert read_script_result({"response_filter": "$.a"}, b"{}", '{"a": {"b": 1}}') == [tensors.response({"b": 1})]


@pytest.mark.parametrize("result", ['{"b": 1}', "plain text", None])
def test_a_response_filter_without_a_match_in_what_a_script_returned_names_its_path(result: str | None) -> None:
    with pytest.raises(UpstreamError, match=r"has nothing at \[\$\.a\], the response_filter"):
        read_script_result({"response_filter": "$.a"}, b'{"raw": 1}', result)


def test_a_script_that_returns_broken_json_is_named() -> None:
    with pytest.raises(InvalidRequest, match="post_process_function did not return JSON"):
        read_script_result({}, b"{}", '{"a": ')
