"""The response to a merged call, split: each request's own rows, its share of the usage, and nothing else."""

from collections.abc import Mapping
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opensearch_ml_stream.connectors.documents import Connector, read_connector
from opensearch_ml_stream.connectors.errors import InvalidRequest, UpstreamError
from opensearch_ml_stream.connectors.predict.merged_calls import Merging, RowPath, find_merging, split_response
from tests.counted_work import CountedBytes

DATA = RowPath("$.data[*].embedding", ("data",), ("embedding",))
COHERE = RowPath("$.embeddings", ("embeddings",), ())
BARE = RowPath("$[*]", (), ())


def split(response: object, path: RowPath, *requests: tuple[str, ...]) -> list[Any]:
    return [orjson.loads(body) for body in split_response(orjson.dumps(response), path, requests)]


def openai(*vectors: list[float], **more: Any) -> dict[str, Any]:
    rows = [{"object": "embedding", "index": index, "embedding": vector} for index, vector in enumerate(vectors)]
    return {"object": "list", "data": rows, "model": "m", **more}


def test_each_request_gets_its_rows_counted_from_its_first() -> None:
    usage = {"prompt_tokens": 10, "total_tokens": 10}
    first, second = split(openai([1.0], [2.5, -3e-9], [3.0], usage=usage), DATA, ("a",), ("bc", "d"))
    assert first["data"] == [{"object": "embedding", "index": 0, "embedding": [1.0]}]
    assert second["data"] == [
        {"object": "embedding", "index": 0, "embedding": [2.5, -3e-9]},
        {"object": "embedding", "index": 1, "embedding": [3.0]},
    ]


def test_rows_in_another_order_are_given_by_their_numbers() -> None:
    rows = [{"index": 2, "embedding": [3.0]}, {"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [2.0]}]
    first, second = split({"data": rows}, DATA, ("a",), ("b", "c"))
    assert first["data"] == [{"index": 0, "embedding": [1.0]}]
    assert second["data"] == [{"index": 0, "embedding": [2.0]}, {"index": 1, "embedding": [3.0]}]


def test_rows_whose_numbers_are_not_those_of_the_texts_are_given_to_nobody() -> None:
    rows = [{"index": number, "embedding": [1.0]} for number in (0, 0)]
    with pytest.raises(UpstreamError, match="more than once"):
        split({"data": rows}, DATA, ("a",), ("b",))


def test_usage_is_shared_by_characters_and_none_is_lost() -> None:
    shares = split(
        openai(*[[1.0]] * 3, usage={"prompt_tokens": 10, "total_tokens": 10}), DATA, ("a" * 8,), ("b",), ("",)
    )
    assert [share["usage"] for share in shares] == [
        {"prompt_tokens": 8, "total_tokens": 8},
        {"prompt_tokens": 1, "total_tokens": 1},
        {"prompt_tokens": 1, "total_tokens": 1},
    ]


def test_usage_is_found_where_each_provider_has_it() -> None:
    cohere = {"embeddings": [[1], [2]], "texts": ["a", "secret"], "meta": {"billed_units": {"input_tokens": 7}}}
    assert split(cohere, COHERE, ("aa",), ("bb",)) == [
        {"usage": {"input_tokens": 3}, "embeddings": [[1]]},
        {"usage": {"input_tokens": 4}, "embeddings": [[2]]},
    ]
    assert split([[1], [2]], BARE, ("a",), ("b",)) == [[[1]], [[2]]]


def test_numbers_keep_the_digits_that_the_provider_sent() -> None:
    body = b'{"data": [{"embedding": [0.10, -1E-5,\n 3]}, {"embedding":[12345678901234567890.5]}]}'
    assert split_response(body, DATA, [("a",), ("b",)]) == [
        b'{"data":[{"embedding":[0.10, -1E-5,\n 3]}]}',
        b'{"data":[{"embedding":[12345678901234567890.5]}]}',
    ]


@pytest.mark.parametrize(
    "more",
    [
        {"note": 'see [1] and [0], "[2]" or ]['},
        {"versions": [1, 2]},
        {"[0]": [], "empty": []},
        {"nested": [[1, 2], [["3"]]]},
    ],
)
def test_other_brackets_in_a_response_are_no_embeddings(more: dict[str, Any]) -> None:
    rows = [share["data"][0]["embedding"] for share in split({**more, **openai([5.0], [6.0])}, DATA, ("a",), ("b",))]
    assert rows == [[5.0], [6.0]]


def test_rows_that_are_not_numbers_are_passed_on_as_they_are() -> None:
    rows: list[Any] = ["base64", {"embedding": ["]", "["]}, {"embedding": "x"}, {"embedding": [[1]]}, 5, None]
    shares = split({"data": rows}, DATA, *[(str(number),) for number in range(len(rows))])
    assert shares == [{"data": [row]} for row in rows]


@pytest.mark.parametrize("path", [DATA, COHERE, BARE], ids=lambda path: str(path.path))
@pytest.mark.parametrize("rows", [0, 1, 3])
def test_another_number_of_rows_is_an_error_that_says_so(path: RowPath, rows: int) -> None:
    response: Any = [[1.0]] * rows
    response = {"$": {"data": [{"embedding": row} for row in response], "embeddings": response}, "$[": response}[
        path.path[:2] if path is BARE else "$"
    ]
    with pytest.raises(UpstreamError) as failed:
        split(response, path, ("a",), ("b",))
    assert failed.value.reason == (
        "The provider's response to 2 texts, which _sidecar.batching has merged from 2 requests, "
        f"has {rows} embeddings at [{path.path}]"
    )


@pytest.mark.parametrize("response", [{}, {"data": None}, [], 5, {"data": {"embedding": [1]}}])
def test_a_response_without_an_array_of_rows_is_an_error(response: object) -> None:
    with pytest.raises(UpstreamError, match=r"has no array at \[\$\.data\[\*\]\.embedding\]"):
        split(response, DATA, ("a",), ("b",))


def test_a_response_that_is_not_json_is_an_error() -> None:
    with pytest.raises(UpstreamError, match="The provider's response is not JSON"):
        split_response(b'{"data": [{"embedding": [1]}, {"embedding": [1]', DATA, [("a",), ("b",)])


VECTORS = st.lists(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53), 2**53), min_size=1)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text('[]",{}\\01 a', max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('[]"0a', max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(VECTORS, min_size=2, max_size=6), JSON, JSON)
def test_rows_are_those_that_a_whole_parse_finds(vectors: list[list[float]], before: object, after: object) -> None:
    rows = [{"before": before, "embedding": vector, "after": after} for vector in vectors]
    requests = [(str(number),) for number in range(len(vectors))]
    shares = split({"a": before, "data": rows, "z": after}, DATA, *requests)
    assert [share["data"] for share in shares] == [[row] for row in rows]


@pytest.mark.parametrize("part", ["[", "[1", "]", "[]", "[[]", "[1]", '["a"]', '["'])
def test_what_is_searched_is_linear_in_the_body(part: str) -> None:
    body = CountedBytes(part.encode() * (200_000 // len(part)))
    with pytest.raises(UpstreamError):
        split_response(body, DATA, [("a",), ("b",)])
    assert body.looked_at < 3 * len(body)  # thousands of times where each bracket looks through all that follows


PRE, POST = "connector.pre_process.", "connector.post_process."
OPENAI = {"pre_process_function": f"{PRE}openai.embedding", "post_process_function": f"{POST}openai.embedding"}
DATA_ROWS = RowPath("$.data[*].embedding", ("data",), ("embedding",))


def connector(parameters: Mapping[str, str] | None = None, **action: Any) -> Connector:
    fields = {"request_body": '{"input": ${parameters.input}}', **OPENAI, **action}
    return read_connector(
        {
            "name": "c",
            "version": 1,
            "protocol": "http",
            "parameters": parameters or {},
            "actions": [{"action_type": "predict", "method": "POST", "url": "https://api.openai.com/v1/e", **fields}],
        }
    )


def found(given: Connector, own: Mapping[str, str] | None = None) -> Merging | None:
    return find_merging(given, given.action(), own or {})


def test_texts_that_go_as_one_list_and_come_back_as_one_are_merged() -> None:
    assert found(connector()) == Merging(DATA_ROWS, None)
    assert found(connector(), {"dimensions": "256"}) == Merging(DATA_ROWS, None)


def test_without_a_pre_process_function_texts_are_a_list_too() -> None:
    assert found(connector(pre_process_function=None)) == Merging(DATA_ROWS, None)


def test_a_step_size_bounds_a_merged_call() -> None:
    assert found(connector({"input_docs_processed_step_size": "16"})) == Merging(DATA_ROWS, 16)
    with pytest.raises(InvalidRequest, match="positive integer"):
        found(connector({"input_docs_processed_step_size": "0"}))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("default.embedding", RowPath("$[*]", (), ())),
        ("cohere.embedding", RowPath("$.embeddings", ("embeddings",), ())),
        ("cohere_v2.embedding.int8", RowPath("$.embeddings.int8", ("embeddings", "int8"), ())),
    ],
)
def test_each_function_has_its_rows_somewhere_else(name: str, expected: RowPath) -> None:
    assert found(connector(post_process_function=POST + name)) == Merging(expected, None)


def test_a_filter_says_where_the_rows_are() -> None:
    expected = RowPath("$.result.rows[*].vector.float32", ("result", "rows"), ("vector", "float32"))
    assert found(connector({"response_filter": expected.path})) == Merging(expected, None)
    assert found(connector(), {"response_filter": expected.path}) == Merging(expected, None)


@pytest.mark.parametrize(
    "action",
    [
        {"pre_process_function": f"{PRE}bedrock.embedding"},
        {"pre_process_function": f"{PRE}bedrock.multimodal_embedding"},
        {"pre_process_function": f"{PRE}cohere.rerank"},
        {"pre_process_function": "return params.text_docs"},
        {"post_process_function": None},
        {"post_process_function": f"{POST}bedrock.embedding"},
        {"post_process_function": f"{POST}cohere.rerank"},
        {"post_process_function": f"{POST}mlcommons.passthrough"},
        {"post_process_function": "return params.data"},
        {"request_body": '{"input": "fixed"}'},
        {"request_body": None},
    ],
)
def test_other_functions_and_templates_are_not_merged(action: dict[str, Any]) -> None:
    assert found(connector(**action)) is None


@pytest.mark.parametrize(
    "own",
    [
        {"input": "[]"},
        {"response_filter": "$.data[0].embedding"},
        {"response_filter": "$..embedding"},
        {"input_processors": "[]"},
    ],
)
def test_parameters_that_change_what_the_texts_become_are_not_merged(own: dict[str, str]) -> None:
    assert found(connector(), own) is None
