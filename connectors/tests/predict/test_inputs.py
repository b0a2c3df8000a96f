"""What a predict body may be, and the errors of one that is wrong."""

import json
from functools import partial

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.predict.inputs import (
    QuestionAnsweringInput,
    RemoteInput,
    TextDocsInput,
    TextSimilarityInput,
    read_predict_input,
)
from opensearch_ml_stream.connectors.syntax.jsontext import JsonText
from tests.counted_work import steps

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def test_a_string_parameter_is_its_text_and_anything_else_keeps_the_callers_own_json_text() -> None:
    read = read_predict_input(b'{"parameters": {"p": "a\\u0041", "n": 1.0E-4, "l": [1,  2], "x": null}}')
    assert read.parameters == {"p": "aA", "n": "1.0E-4", "l": "[1,  2]", "x": "null"}
    assert {name: type(value) for name, value in read.parameters.items()} == {
        "p": str,
        "n": JsonText,
        "l": JsonText,
        "x": JsonText,
    }


_PIECES = st.sampled_from([
    '{"parameters":', "{", "}", '"parameters"', ":", '"a":', '"b" : ', '"x"', '"\\u0041"', '"\\ud83d"',
    '"\\ud83d\\ude00"', '"\n"', '"//"', '"{"', '"["', ",", " ", "\u00a0", "\ufeff", "[", "]", "1", "null", "NaN",
    "/*c*/", "// c\n", '"é"', "\\", '"text_docs":', '["parameters",', '"ab"', '"',
])  # fmt: skip
_BODIES = st.one_of(
    st.lists(_PIECES, max_size=10).map("".join),
    st.lists(_PIECES, max_size=6).map(lambda pieces: '{"parameters":{' + "".join(pieces) + "}}"),
    st.lists(_PIECES, max_size=3).map(lambda pieces: '{"parameters":{"a":"x"}}' + "".join(pieces)),
)


def _outcome(body: bytes, algorithm: str | None) -> object:
    try:
        read = read_predict_input(body, algorithm)
    except InvalidRequest as error:
        return error.reason, error.type
    return read, [type(value) for value in read.parameters.values()]


@given(_BODIES)
@example('[["parameters",{"a":"{"}]]')
@example('{"parameters":{"a":"x","a":"y"}}')
@example('{"parameters":{"a":"x"}}{')
@example('{"parameters":[["a","{"]]}')
def test_a_body_of_strings_is_read_as_any_other(text: str) -> None:
    body = text.encode("utf-8", "surrogatepass")
    assert _outcome(body, None) == _outcome(body, "remote"), "with an algorithm, all bodies are read in one way"


def test_a_body_of_strings_is_read_by_the_parser_alone() -> None:
    few, many = (json.dumps({"parameters": {"a": text, "b": text}}).encode() for text in ("x", "line\n" * 10_000))
    taken = steps(partial(read_predict_input, few))
    assert steps(partial(read_predict_input, many)) == taken < steps(partial(read_predict_input, few, "remote")) / 2


@given(st.dictionaries(st.text(), _JSON, max_size=5))
def test_no_parameter_is_lost_or_changed(parameters: dict[str, object]) -> None:
    read = read_predict_input(json.dumps({"parameters": parameters}).encode())
    values = {n: json.loads(v) if isinstance(v, JsonText) else v for n, v in read.parameters.items()}
    assert values == parameters


@pytest.mark.parametrize(
    ("body", "algorithm", "expected"),
    [
        (b"{}", None, RemoteInput()),
        (b'{"parameters": null}', None, RemoteInput()),
        (b'{"parameters": {}, "what": 1}', "remote", RemoteInput()),
        (b'/* a */ {"parameters": {"p": "//"}} // b', None, RemoteInput({"p": "//"})),
        (b'{"action_type": "batch_predict"}', None, RemoteInput(action_type="BATCH_PREDICT")),
        (b'{"parameters": {"p": "x"}}}', None, RemoteInput({"p": "x"})),
        (b'{"parameters": {"p": "x"}} {"parameters": {"p": "y"}} junk', None, RemoteInput({"p": "x"})),
        (b'{"action_type": "Execute"}', "remote", RemoteInput(action_type="EXECUTE")),
        (b'{"dlq": {"bucket": "b"}}', None, RemoteInput(dlq={"bucket": "b"})),
        (b'{"text_docs": ["a", "b"]}', None, TextDocsInput(("a", "b"))),
        (b'{"text_docs": ["a"], "parameters": {"d": "x"}}', "text_embedding", TextDocsInput(("a",), {"d": "x"})),
        (b'{"text_docs": ["a", 1, 1.50, true, false]}', None, TextDocsInput(("a", "1", "1.50", "true", "false"))),
        (b'{"text_docs": ["a"], "return_number": true}', "SPARSE_ENCODING", TextDocsInput(("a",))),
        (b'{"query_text": "q", "text_docs": ["a"]}', None, TextSimilarityInput("q", ("a",))),
        (b'{"query_text": "q", "text_docs": ["a"]}', "text_similarity", TextSimilarityInput("q", ("a",))),
        (b'{"question": "q", "context": "c"}', None, QuestionAnsweringInput("q", "c")),
        (b'{"question": "q", "parameters": {"p": "x"}}', None, RemoteInput({"p": "x"})),
        (b'{"question": "q", "context": "c"}', "question_answering", QuestionAnsweringInput("q", "c")),
    ],
)
def test_the_algorithm_or_the_fields_say_what_input_it_is(body: bytes, algorithm: str | None, expected: object) -> None:
    assert read_predict_input(body, algorithm) == expected


@pytest.mark.parametrize(
    ("body", "algorithm", "type", "reason"),
    [
        (b"", None, "parse_exception", "request body is required"),
        (b" // nothing", None, "parse_exception", "request body is required"),
        (b"[1]", None, "parse_exception", "The request body must be a JSON object"),
        (b'{"parameters":', None, "json_e_o_f_exception", "Expecting value at line 1, column 15"),
        (b'{"parameters": {"a": tru}}', None, "json_parse_exception", "Expecting value at line 1, column 22"),
        (b'{"a": 1, "a": 2}', None, "json_parse_exception", "Duplicate field 'a'"),
        (b'{"parameters": {"a": 1, "a": 2}}', None, "json_parse_exception", "Duplicate field 'a'"),
        (b'{"parameters": {"a": {"b": 1, "b": 2}}}', None, "json_parse_exception", "Duplicate field 'b'"),
        (b'{"parameters": "x"}', None, "illegal_argument_exception", "parameters must be a JSON object"),
        (b'{"text_docs": []}', None, "illegal_argument_exception", "Empty text docs"),
        (b'{"text_docs": ["a", null]}', None, "illegal_argument_exception", r"text_docs\[1\] must be a string"),
        (b'{"parameters": {}}', "text_embedding", "illegal_argument_exception", "Empty text docs"),
        (b'{"query_text": 1, "text_docs": ["a"]}', None, "illegal_argument_exception", "query_text must be a string"),
        (b'{"question": "q"}', "question_answering", "illegal_argument_exception", "context must be a string"),
        (b"{}", "kmeans", "illegal_argument_exception", r"Algorithm \[kmeans\] is not one of remote, text_embedding"),
        (b'{"action_type": "fly"}', None, "illegal_argument_exception", "Wrong Action Type of fly"),
        (b'{"action_type": ["predict"]}', None, "illegal_argument_exception", "action_type must be a string"),
        (
            b'{"action_type": "cancel_batch_predict"}',
            None,
            "illegal_argument_exception",
            r"is about a batch job and makes no prediction. .* POST /_plugins/_ml/tasks/\{task_id\}/_cancel",
        ),
        (b'{"action_type": "BATCH_PREDICT_STATUS"}', None, "illegal_argument_exception", "is about a batch job"),
        (b'{"dlq": "x"}', None, "illegal_argument_exception", "dlq must be an object"),
    ],
)
def test_a_wrong_body_is_a_400_that_says_what_is_wrong(
    body: bytes, algorithm: str | None, type: str, reason: str
) -> None:
    with pytest.raises(InvalidRequest, match=reason) as caught:
        read_predict_input(body, algorithm)
    assert (caught.value.type, caught.value.status) == (type, 400)


def test_an_error_never_repeats_what_the_caller_wrote() -> None:
    with pytest.raises(InvalidRequest) as caught:
        read_predict_input(b'{"parameters": {"prompt": "my secret diary" oops}}')
    assert "diary" not in caught.value.reason


@pytest.mark.parametrize("body", ['{"x": %s}', '{"parameters": {"x": %s}}'])
def test_a_body_nested_without_end_is_refused(body: str) -> None:
    with pytest.raises(InvalidRequest, match="nested too deeply"):
        read_predict_input((body % ("[" * 100_000 + "]" * 100_000)).encode())


@pytest.mark.parametrize("field", ["parameters", "text_docs"])
def test_half_of_a_surrogate_pair_is_refused_by_the_name_of_its_field(field: str) -> None:
    value = {"parameters": {"inputs": "\ud83d"}, "text_docs": ["\ud83d"]}[field]
    with pytest.raises(InvalidRequest, match=f"{field} holds half of a surrogate pair"):
        read_predict_input(json.dumps({field: value}).encode())


def test_a_whole_surrogate_pair_is_a_character() -> None:
    assert read_predict_input(json.dumps({"parameters": {"inputs": "😀"}}).encode()) == RemoteInput({"inputs": "😀"})
