"""Embeddings stand where their inputs stand, by each way in which they are read; what cannot be told is an error."""

from typing import Any

import orjson
import pytest

from opensearch_ml_stream.connectors.documents import Action
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.predict import encoded_results, post_process
from opensearch_ml_stream.connectors.predict.encoded_results import MIN_ARRAY_BYTES
from opensearch_ml_stream.connectors.predict.post_process import RESPONSE_FILTER

_DATA = "$.data[*].embedding"
_LONG = MIN_ARRAY_BYTES  # numbers of a vector that is cut out of its body, and so never parsed


def _numbered(*indexes: Any, name: str = "index", length: int = _LONG) -> list[dict[str, Any]]:
    """Return rows with these indexes, each with a vector of its index or, if that is no number, its position."""
    return [
        {
            "embedding": [index if type(index) in (int, float) else position] * length,
            **({} if index == "none" else {name: index}),
        }
        for position, index in enumerate(indexes)
    ]


def _firsts(body: Any, path: str = _DATA, inputs: int | None = None) -> list[float]:
    """Return the first number of each embedding, which is the same parsed as cut out."""
    action = Action("PREDICT", "POST", "http://p/", post_process_function="connector.post_process.openai.embedding")
    parameters, encoded = {RESPONSE_FILTER: path}, orjson.dumps(body)
    parsed = post_process.read_response(action, parameters, encoded, inputs)
    assert isinstance(parsed, list)
    if (place := post_process.embedding_path(action, parameters)) is not None:
        cut = encoded_results.encode_embeddings(place, encoded, inputs)
        assert cut is None or orjson.loads(b"".join(cut)) == parsed
    return [tensor["data"][0] for tensor in parsed]


@pytest.mark.parametrize("length", [2, _LONG])
@pytest.mark.parametrize(
    ("path", "around"),
    [
        (_DATA, lambda rows: {"data": rows}),
        ("$[*].embedding", lambda rows: rows),
        ("$.result.data[*].embedding", lambda rows: {"result": {"data": rows}}),
        ("$.data[?(@.embedding)].embedding", lambda rows: {"data": rows}),
        ("$[0].data[*].embedding", lambda rows: [{"data": rows}]),
    ],
)
def test_the_index_beside_an_embedding_says_which_input_it_is_of(path: str, around: Any, length: int) -> None:
    for name in ("index", "text_index"):
        assert _firsts(around(_numbered(2, 0, 1, name=name, length=length)), path, 3) == [0, 1, 2]


def test_numbers_may_be_written_as_floats() -> None:
    assert _firsts({"data": _numbered(1.0, 0.0)}) == [0, 1]


@pytest.mark.parametrize("indexes", [("none",), ("none", "none"), (None, None)])
def test_without_any_index_the_position_counts(indexes: tuple[Any, ...]) -> None:
    assert _firsts({"data": _numbered(*indexes)}, inputs=len(indexes)) == list(range(len(indexes)))


def test_a_first_embedding_without_an_index_is_that_of_the_first_input() -> None:
    assert _firsts({"data": _numbered("none", 2, 1)}) == [0, 1, 2]  # so Gemini sends them


@pytest.mark.parametrize("length", [2, _LONG])
@pytest.mark.parametrize(
    ("indexes", "reason"),
    [
        ((0, 0), "an index is there more than once"),
        (("none", 0), "an index is there more than once"),
        ((0, "none"), "element 1 has no index"),
        ((1, None), "element 1 has no index"),
        ((1, 2), "none has the index 0"),
        ((0, 2), "none has the index 1"),
        ((-1, 0), "none has the index 1"),
        ((True, False), "element 0 is not a whole number"),
        (("1", "0"), "element 0 is not a whole number"),
        ((0, 0.5), "element 1 is not a whole number"),
        ((0, [1]), "element 1 is not a whole number"),
    ],
)
def test_indexes_that_are_not_those_of_the_inputs_are_an_error(
    indexes: tuple[Any, ...], reason: str, length: int
) -> None:
    with pytest.raises(UpstreamError, match=reason) as caught:
        _firsts({"data": _numbered(*indexes, length=length)}, inputs=2)
    assert _DATA in caught.value.reason


@pytest.mark.parametrize(("found", "inputs"), [(1, 2), (3, 2), (0, 1), (2, 1)])
def test_the_embeddings_are_as_many_as_the_inputs(found: int, inputs: int) -> None:
    for rows in (_numbered(*range(found)), _numbered(*["none"] * found)):
        with pytest.raises(UpstreamError, match=rf"to {inputs} texts? has {found} embeddings? at \[\$\.data"):
            _firsts({"data": rows}, inputs=inputs)


def test_one_embedding_is_not_that_of_two_texts() -> None:
    action = Action("PREDICT", "POST", "http://p/", post_process_function="connector.post_process.bedrock.embedding")
    with pytest.raises(UpstreamError, match="to 2 texts has 1 embedding "):
        post_process.read_response(action, {}, b'{"embedding":[1]}', 2)


def test_scores_are_as_many_as_the_documents() -> None:
    action = Action("PREDICT", "POST", "http://p/", post_process_function="connector.post_process.cohere.rerank")
    body = b'{"results":[{"index":0,"relevance_score":0.5}]}'
    assert post_process.read_response(action, {}, body, 1)
    with pytest.raises(UpstreamError, match="to 2 texts has 1 score "):
        post_process.read_response(action, {}, body, 2)
