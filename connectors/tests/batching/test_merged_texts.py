"""Which predictions of texts can share a call of the provider."""

from collections.abc import Mapping
from typing import Any

import pytest

from opensearch_ml_stream.connectors.batching.merged_texts import Merging, find_merging
from opensearch_ml_stream.connectors.batching.shared_response import RowPath
from opensearch_ml_stream.connectors.documents import Connector, read_connector
from opensearch_ml_stream.connectors.errors import InvalidRequest

PRE, POST = "connector.pre_process.", "connector.post_process."
OPENAI = {"pre_process_function": f"{PRE}openai.embedding", "post_process_function": f"{POST}openai.embedding"}
DATA = RowPath("$.data[*].embedding", ("data",), ("embedding",))


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
    assert found(connector()) == Merging(DATA, None)
    assert found(connector(), {"dimensions": "256"}) == Merging(DATA, None)


def test_without_a_pre_process_function_texts_are_a_list_too() -> None:
    assert found(connector(pre_process_function=None)) == Merging(DATA, None)


def test_a_step_size_bounds_a_merged_call() -> None:
    assert found(connector({"input_docs_processed_step_size": "16"})) == Merging(DATA, 16)
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
