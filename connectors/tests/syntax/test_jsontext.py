"""JSON text, read as OpenSearch reads it and passed on as it was written."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.syntax import json_members, jsontext
from opensearch_ml_stream.connectors.syntax.jsontext import JsonText
from tests.counted_work import steps

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a":1} // the end', {"a": 1}),
        ('/* before */ {"a": /* inside */ "b // no comment"}', {"a": "b // no comment"}),
        ('{"url":"https://h/*x*/", // c\n"q":"\\"//"}', {"url": "https://h/*x*/", "q": '"//'}),
        ("\ufeff[1]", [1]),
    ],
)
def test_comments_are_blank_outside_strings(text: str, value: object) -> None:
    assert jsontext.loads(text.encode()) == value


@pytest.mark.parametrize(
    ("body", "type", "reason"),
    [
        (b"", "parse_exception", "request body is required"),
        (b"  // only a comment", "parse_exception", "request body is required"),
        (b'{"a":', "json_e_o_f_exception", "line 1, column 6"),
        (b'{"a"}', "json_parse_exception", "line 1, column 5"),
        (b'{"a":1,"a":2}', "json_parse_exception", "Duplicate field 'a'"),
        (b'{"a":{"b":1,"b":2}}', "json_parse_exception", "Duplicate field 'b'"),
        (b'{"a":NaN}', "json_parse_exception", "NaN is not a JSON number"),
        (b'{"a":"\xff"}', "parse_exception", "not UTF-8 at byte 6"),
        (b"[" * 100_000, "json_parse_exception", "nested"),
    ],
)
def test_a_body_that_is_not_json_is_refused_with_its_position(body: bytes, type: str, reason: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        jsontext.loads(body)
    assert caught.value.type == type
    assert reason in caught.value.reason


def test_a_body_that_is_no_object_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="must be a JSON object"):
        jsontext.load_object(b"[1]")


@pytest.mark.parametrize("rest", [b"}", b"\n}\n", b" // the end", b' {"b":2}', b"no JSON"])
def test_what_follows_the_object_is_not_looked_at_as_in_ml_commons(rest: bytes) -> None:
    assert jsontext.load_object(b'\n {"a": {"b": 1}}' + rest) == {"a": {"b": 1}}


@pytest.mark.parametrize(
    ("body", "reason"),
    [(b" \n", "body is required"), (b'{"a":1,}', "line 1, column"), (b"{", "line 1"), (b"}", "not JSON")],
)
def test_an_object_that_does_not_end_well_is_refused(body: bytes, reason: str) -> None:
    with pytest.raises(InvalidRequest, match=reason):
        jsontext.load_object(body)


@given(st.dictionaries(st.text(max_size=5), values, max_size=4), st.sampled_from([None, 2]))
def test_members_keep_their_text(document: dict[str, object], indent: int | None) -> None:
    text = json.dumps(document, indent=indent, ensure_ascii=False)
    assert [(key, json.loads(value)) for key, value in json_members.split_members(text)] == list(document.items())


@given(
    st.dictionaries(st.text(max_size=5), values, max_size=4), st.dictionaries(st.text(max_size=5), values, max_size=2)
)
def test_set_members_replaces_and_never_doubles(document: dict[str, object], new: dict[str, object]) -> None:
    changed = json_members.set_members(json.dumps(document), new)
    assert jsontext.loads(changed.encode()) == {**document, **new}


def test_set_members_keeps_the_text_of_numbers_and_drops_the_given_names() -> None:
    changed = json_members.set_members('{"a": 0.0001, "stream": false, "b": 1E7, "c": 1}', {"stream": True}, ("c",))
    assert changed == '{"a":0.0001,"b":1E7,"stream":true}'


@pytest.mark.parametrize("text", ["[1]", "7", "", '{"a":1', '{"a":1}x', "{,}", '{"a":1,}'])
def test_set_members_takes_objects_only(text: str) -> None:
    with pytest.raises(json.JSONDecodeError):
        json_members.set_members(text, {})


@pytest.mark.parametrize(
    ("text", "column"),
    [('{"a\\q":1}', 4), ('{"a\nb":1}', 4), ('{"a" 1}', 6), ('{"a":1 "b":2}', 8), ('{"b":2, 1}', 9), ('{"a":[1 2]}', 9)],
)
def test_members_tells_where_the_text_is_wrong(text: str, column: int) -> None:
    with pytest.raises(json.JSONDecodeError) as raised:
        json_members.split_members(text)
    assert raised.value.pos + 1 == column


@pytest.mark.parametrize("text", ["{}", "[1]", "7", '"x"', "true", "null", ' {"a":[1,2]} '])
def test_json_is_json(text: str) -> None:
    assert jsontext.is_json(text)


@pytest.mark.parametrize("text", ["", "{a:1}", "[1,]", "{'a':1}", "hello", '{"a":1}x', "NaN", "[" * 100_000])
def test_what_is_lenient_is_not_json(text: str) -> None:
    assert not jsontext.is_json(text)


def test_parameters_keep_the_text_of_what_is_no_string() -> None:
    assert jsontext.parse_parameter("1e-4") == JsonText("1e-4")
    assert isinstance(jsontext.parse_parameter("1e-4"), JsonText)
    assert not isinstance(jsontext.parse_parameter('"1"'), JsonText)
    assert jsontext.to_parameter([1, "é"]) == '[1,"é"]'


def test_long_texts_cost_their_share() -> None:
    """Were it quadratic, it would take longer than any test may."""
    text = json.dumps({"a": "x // y \\ " * 1_000_000})
    assert jsontext.strip_comments(text) == text


@pytest.mark.parametrize(
    "text",
    [
        '{"keys":{' + ",".join(f'"{n:x}":1' for n in range(40_000)) + ',"9c3f":1}}',
        "{} " + "/* " * 2_000_000,
        '{"//": "' + r"\"" * 2_000_000,
        '{"digits": ' + "1" * 200_000 + "}",
        '{"' + r"\n" * 4_000_000,
        '{"' + r"\n" * 4_000_000 + '":1}',
    ],
    ids=[
        "a key twice among many",
        "comments never closed",
        "a string never closed",
        "a long number",
        "a key never closed",
        "a long key",
    ],
)
def test_no_text_takes_more_than_linear_time(text: str) -> None:
    """Were it quadratic, such a text would take longer than any test may."""
    with suppress(InvalidRequest):
        jsontext.load_object(text.encode())
    with suppress(InvalidRequest, json.JSONDecodeError):
        json_members.split_members(text)


@pytest.mark.parametrize("comment", ["//\n", "/**/", "1//\n", "/* a */ "])
def test_comments_take_as_many_steps_as_there_may_be_comments(comment: str) -> None:
    def load(count: int) -> None:
        with suppress(InvalidRequest):
            jsontext.load_object(b'{"a":1' + comment.encode() * count + b"}")

    assert steps(lambda: load(100_000)) == steps(lambda: load(20_000))


@pytest.mark.parametrize("filling", [" ", '""', '"a"', '"//"', "\n\t", '"a" '], ids=repr)
def test_blanks_and_strings_are_walked_in_no_steps(filling: str) -> None:
    def load(count: int) -> None:
        with suppress(InvalidRequest):
            jsontext.load_object(b'/**/{"a":1' + filling.encode() * count + b"}")

    assert steps(lambda: load(400_000)) == steps(lambda: load(100_000))


def test_a_body_may_have_so_many_comments_and_no_more() -> None:
    assert jsontext.load_object(b'{"a":1' + b"//\n" * jsontext.MAX_COMMENTS + b"}") == {"a": 1}
    with pytest.raises(InvalidRequest, match="The request body has more than 10000 comments"):
        jsontext.load_object(b'{"a":1' + b"//\n" * (jsontext.MAX_COMMENTS + 1) + b"}")


def test_the_parts_of_a_compressed_body_are_paid_by_what_was_sent() -> None:
    text = b'{"a":[' + b"0," * jsontext.MAX_COMPRESSED_PARTS + b"0]}"
    jsontext.check_compressed(text, 2 * len(text))
    jsontext.check_compressed(b'{"a":[' + b"0," * (jsontext.MAX_COMPRESSED_PARTS - 10) + b"0]}", 900)
    with pytest.raises(InvalidRequest, match="A compressed body of 900 bytes may hold 400000 of the characters"):
        jsontext.check_compressed(text, 900)


def test_a_number_of_more_digits_than_can_be_read_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="more than 1000 digits"):
        jsontext.load_object(b'{"a": ' + b"1" * 5000 + b"}")
