"""Embeddings cut out of a provider's response: the same as those that are parsed and printed, or left to the parser."""

import json
from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from opensearch_ml_stream.connectors.documents import Action
from opensearch_ml_stream.connectors.predict import encoded_results, post_process
from opensearch_ml_stream.connectors.predict.encoded_results import MIN_ARRAY_BYTES, cut_arrays
from opensearch_ml_stream.connectors.predict.post_process import RESPONSE_FILTER

_LENGTH = MIN_ARRAY_BYTES  # numbers that make a long array, whatever they are
_VECTOR = [0.0123, -0.5, 1e-05, 7.0] * (_LENGTH // 4)


def _encode(name: str, body: bytes, response_filter: str = "") -> bytes | None:
    action = Action("PREDICT", "POST", "http://p/", post_process_function=f"connector.post_process.{name}")
    place = post_process.embedding_path(action, {RESPONSE_FILTER: response_filter})
    parts = None if place is None else encoded_results.encode_embeddings(place, body)
    return None if parts is None else b"".join(parts)


def _parse(name: str, body: bytes, response_filter: str = "") -> Any:
    action = Action("PREDICT", "POST", "http://p/", post_process_function=f"connector.post_process.{name}")
    return post_process.read_response(action, {RESPONSE_FILTER: response_filter}, body)


def _openai(vectors: list[Any]) -> dict[str, Any]:
    data = [{"object": "embedding", "index": index, "embedding": vector} for index, vector in enumerate(vectors)]
    return {"object": "list", "data": data, "model": "é", "usage": {"prompt_tokens": 8}}


def _dumps(value: object, style: int = 0) -> bytes:
    """Return JSON: compact, as Python's json has it, and pretty-printed in two ways."""
    styles: list[dict[str, Any]] = [{"separators": (",", ":")}, {}, {"indent": 2}, {"indent": "\t"}]
    return json.dumps(value, ensure_ascii=False, **styles[style]).encode()


_RESPONSES: dict[str, Any] = {
    "openai.embedding": _openai([_VECTOR, _VECTOR]),
    "cohere.embedding": {"id": "1", "texts": ["[1,2", "a"], "embeddings": [_VECTOR, _VECTOR]},
    "cohere_v2.embedding.float": {"embeddings": {"float": [_VECTOR]}, "meta": {"version": [1, 2]}},
    "cohere_v2.embedding.int8": {"embeddings": {"int8": [list(range(-64, 64))], "uint8": [[1] * 200]}},
    "default.embedding": [_VECTOR, _VECTOR],
    "bedrock.embedding": {"embedding": _VECTOR, "embeddingsByType": {"float": _VECTOR}, "inputTextTokenCount": 3},
    "bedrock_v2.embedding.float": {"embedding": _VECTOR, "embeddingsByType": {"float": _VECTOR}},
    "bedrock.nova.embedding": {"embeddings": [{"embeddingType": "TEXT", "embedding": _VECTOR}]},
}


@pytest.mark.parametrize("style", range(4))
@pytest.mark.parametrize("name", _RESPONSES)
def test_the_embeddings_of_each_provider_are_cut_out_however_they_are_printed(name: str, style: int) -> None:
    body = _dumps(_RESPONSES[name], style)
    encoded = _encode(name, body)
    assert encoded is not None
    assert orjson.loads(encoded) == _parse(name, body)
    assert not any(blank in encoded for blank in (b" ", b"\n", b"\t"))


def test_numbers_stay_as_the_provider_wrote_them() -> None:
    body = b'{"embedding": [1.50, -0.0, 1e-7, 12345678901234567890123, %b0]}' % (b"0.1000000," * 20)
    encoded = _encode("bedrock.embedding", body)
    assert encoded is not None
    assert encoded.startswith(
        b'[{"name":"sentence_embedding","data_type":"FLOAT32","shape":[25],'
        b'"data":[1.50,-0.0,1e-7,12345678901234567890123,0.1000000,'
    )
    assert orjson.loads(encoded) == _parse("bedrock.embedding", body)


@pytest.mark.parametrize(
    "number", ["1e400", "1E400", "-1e+400", "1" * 309, "1" * 400 + ".5", "0." + "1" * 400, "1E5", "1..2", "01", "+1"]
)
def test_numbers_that_may_not_be_finite_are_left_to_the_parser(number: str) -> None:
    body = b'{"embedding": [%b, %b]}' % (b", ".join([b"0.25"] * _LENGTH), number.encode())
    assert _encode("bedrock.embedding", body) is None


@pytest.mark.parametrize(
    ("name", "response_filter"),
    [
        ("openai.embedding", "$.data[*].embedding[*]"),
        ("openai.embedding", "$..embedding"),
        ("openai.embedding", "$.data[?length(@.embedding) > 2].embedding"),
        ("openai.embedding", "$.data[0].embedding"),
        ("bedrock.embedding", "$.data[0].embedding[0]"),
        ("bedrock.embedding", "$.data[0].embedding"),  # two arrays, of which the path reads one
        ("openai.embedding", "$"),
        ("openai.embedding", "$.gone"),
    ],
)
def test_a_path_that_ends_elsewhere_than_at_the_arrays_is_left_to_the_parser(name: str, response_filter: str) -> None:
    assert _encode(name, _dumps(_openai([_VECTOR, _VECTOR])), response_filter) is None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[" * 100_000,
        b"[1,2]," * 50_000,
        b'{%b:1,"embedding":%b}' % (_dumps(_VECTOR), _dumps(_VECTOR)),  # no name of a member
        b'{"x":"%b","embedding":%b}' % (_dumps(_VECTOR), _dumps(_VECTOR)),  # in a string
        b'{"x":"%b","embedding":%b}' % (_dumps(_VECTOR, 2), _dumps(_VECTOR)),
        b'{"embedding":%b' % _dumps(_VECTOR),
        b'{"embedding":%b}' % _dumps([1, *_VECTOR, [1]]),
        b'{"embedding":%b}' % _dumps([*_VECTOR, "a,b"]),
        b'{"embedding":%b}' % _dumps([*_VECTOR, {"a": 1}]),
        b'{"embedding":%b}' % _dumps([*_VECTOR, {}]),
        b'{"embedding":%b,"x":"\xff"}' % _dumps(_VECTOR),
        b'{"embedding":%b,"x":"\\n"}' % _dumps(_VECTOR),
        b'{"a":%b1%b,"embedding":%b}' % (b"[" * 200, b"]" * 200, _dumps(_VECTOR)),
    ],
)  # fmt: skip
def test_what_cannot_be_cut_is_left_to_the_parser(body: bytes) -> None:
    assert _encode("bedrock.embedding", body) is None


def test_a_body_is_cut_up_to_the_depth_that_may_be_passed_on() -> None:
    def nested(depth: int) -> bytes:
        return b"[" * depth + _dumps(_VECTOR) + b"]" * depth

    assert cut_arrays(nested(199)) is not None
    assert cut_arrays(nested(200)) is None


def test_outputs_in_parts_make_the_response_that_tensors_make() -> None:
    outputs = [[{"name": "response", "dataAsMap": {"a": number}}] for number in range(3)]
    for few in (outputs[:1], outputs):
        parts = [[b"[", orjson.dumps(output)[1:]] for output in few]
        assert encoded_results.encode_tensors(few) == orjson.dumps(
            {"inference_results": [{"output": output, "status_code": 200} for output in few]}
        )
        assert encoded_results.join_outputs(parts) == encoded_results.encode_tensors(few)


_INSERTIONS = [b".", b"e", b"9", b",", b"]", b"[", b'"', b"-", b" ", b"\\", b"\xff"]
_numbers: st.SearchStrategy[Any] = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(),
    st.sampled_from([1e-05, -0.0, 1e22, 1e300, True, None, "x", [], [1.5], {}]),
)
_vectors = st.one_of(
    st.builds(lambda numbers: numbers + [0.25] * _LENGTH, st.lists(_numbers, max_size=5)),
    st.lists(st.floats(-1, 1, width=32), min_size=_LENGTH, max_size=_LENGTH + 5),
    st.builds(lambda number: [number], _numbers),
)
_paths = st.sampled_from(["", "$.data[*].embedding", "$.data[1].embedding", "$.data", "$[*]", "$.a.b", "$.data[*].a"])


@settings(max_examples=120)
@given(
    st.lists(_vectors, max_size=3), _paths, st.integers(0, 3), st.sampled_from(sorted(_RESPONSES)), st.integers(0, 9),
    st.data(),
)  # fmt: skip
@example([[0.5] * 200, [1]], "", 0, "openai.embedding", 0, None)
def test_cutting_and_parsing_give_the_same(
    vectors: list[Any], path: str, style: int, name: str, shape: int, data: st.DataObject | None
) -> None:
    one = vectors[0] if vectors else None
    by_type = {"float": one if name.startswith("bedrock") else vectors, "int8": vectors, "binary": one}
    response: Any = [
        {"data": [{"a": [1], "embedding": vector} for vector in vectors]}, vectors, {"embeddings": vectors},
        {"embedding": one, "embeddingsByType": by_type}, {"embeddings": by_type}, {"a": {"b": vectors}},
        {"embeddings": [{"embedding": vector} for vector in vectors]}, {"data": vectors}, {"a": {"b": one}}, one,
    ][shape]  # fmt: skip
    body = _dumps(response, style)
    if data is not None and data.draw(st.booleans()):
        position = data.draw(st.integers(0, len(body)))
        insertion = data.draw(st.sampled_from([b"", *_INSERTIONS]))
        body = body[:position] + insertion + body[position + data.draw(st.integers(0, 2)) :]
    encoded = _encode(name, body, path)
    if encoded is not None:
        assert orjson.loads(encoded) == _parse(name, body, path)
