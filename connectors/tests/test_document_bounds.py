"""What a connector's document may hold: numbers, lengths and nesting within bounds, each refusal a clear 400."""

import json
import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from opensearch_ml_stream.connectors.client_config import NO_LIMIT, client_config_document
from opensearch_ml_stream.connectors.documents import (
    MAX_ACTIONS,
    MAX_HEADERS,
    MAX_PARAMETERS,
    MAX_URL_LENGTH,
    connector_document,
)
from opensearch_ml_stream.connectors.errors import MAX_REASON_CHARS, InvalidRequest
from opensearch_ml_stream.connectors.syntax import json_members, jsontext
from tests.counted_work import steps

_ACTION = {"action_type": "predict", "method": "POST", "url": "https://h/"}
_BODY: dict[str, Any] = {
    "name": "c",
    "version": "1",
    "protocol": "http",
    "credential": {"k": "v"},
    "actions": [_ACTION],
}


@pytest.mark.parametrize(
    "value", ["NaN", "Infinity", "-Infinity", "1e400", "1e30", 10**30, 10**400, "9" * 5_000, -1, {}]
)
@pytest.mark.parametrize("name", ["max_connection", "read_timeout", "connection_timeout", "retry_backoff_millis"])
def test_a_number_of_the_client_config_is_one_that_can_be_used(name: str, value: object) -> None:
    with pytest.raises(InvalidRequest, match=rf"client_config\.{name} (is out of range|must be a number)"):
        client_config_document({name: value})


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("max_connection", "at least 1"),
        ("read_timeout", "more than 0"),
        ("connection_timeout", "more than 0"),
        ("retry_timeout_seconds", "0 or more"),
        ("max_retry_times", "-1 or more"),
    ],
)
def test_the_refusal_of_a_number_names_both_its_bounds(name: str, least: str) -> None:
    value = 0 if least in ("at least 1", "more than 0") else -2
    with pytest.raises(InvalidRequest, match=rf"{name} is out of range: it must be {least}, and at most {NO_LIMIT}"):
        client_config_document({name: value})


def test_the_greatest_number_of_the_client_config_is_good() -> None:
    assert client_config_document({"max_connection": NO_LIMIT})["max_connection"] == NO_LIMIT


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            {"actions": [{**_ACTION, "url": "https://h/" + "x" * MAX_URL_LENGTH}]},
            f"more than {MAX_URL_LENGTH} characters",
        ),
        ({"actions": [_ACTION] * (MAX_ACTIONS + 1)}, f"may have {MAX_ACTIONS} actions"),
        (
            {"actions": [{**_ACTION, "headers": {f"h{n}": "v" for n in range(MAX_HEADERS + 1)}}]},
            f"{MAX_HEADERS} headers",
        ),
        ({"parameters": {f"p{n}": "v" for n in range(MAX_PARAMETERS + 1)}}, f"may have {MAX_PARAMETERS} parameters"),
        ({"parameters": {"n": float("inf")}}, "A number is beyond"),
        ({"actions": [{**_ACTION, "action_type": "x" * 1_000_000}]}, "Wrong Action Type of xxx"),
    ],
    ids=["url", "actions", "headers", "parameters", "number", "action type"],
)
def test_a_connector_of_too_much_is_refused(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidRequest, match=reason) as refused:
        connector_document(_BODY | change)
    assert len(refused.value.reason) <= MAX_REASON_CHARS


def test_refused_connectors_of_long_urls_leave_nothing_behind() -> None:
    """Python's own cache of parsed URLs kept each of them."""
    tracemalloc.start()
    try:
        for number in range(20):
            with pytest.raises(InvalidRequest):
                connector_document(_BODY | {"actions": [{**_ACTION, "url": f"https://h{number}/" + "x" * 1_000_000}]})
        assert tracemalloc.get_traced_memory()[0] < 2_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("opening", ["[", '{"a":'])
@pytest.mark.parametrize("levels", [jsontext.MAX_DEPTH + 3, 300, 980, 5_000])
def test_a_body_may_be_so_deep(opening: str, levels: int) -> None:
    closing = "]" if opening == "[" else "}"
    deep = '{"x":' + opening * (levels - 2) + "[]" + closing * (levels - 2) + "}"
    with pytest.raises(InvalidRequest, match="nested too deeply"):
        jsontext.load_object(deep.encode())
    with pytest.raises(RecursionError):
        json_members.split_members(deep)
    assert not jsontext.is_json(deep)
    with pytest.raises(InvalidRequest, match=r"text is (nested more|not JSON)"):
        jsontext.parse(deep, "text")
    assert jsontext.value_or_text(deep) == deep


def test_a_body_of_the_greatest_depth_is_good() -> None:
    deep = '{"x":' + "[" * (jsontext.MAX_DEPTH - 1) + "]" * (jsontext.MAX_DEPTH - 1) + "}"
    value = jsontext.load_object(deep.encode())
    assert jsontext.dumps(value) == deep
    assert jsontext.is_json(deep)


def test_a_value_that_no_parser_made_is_refused_as_well() -> None:
    value: Any = 1
    for _ in range(100_000):
        value = [value]
    with pytest.raises(InvalidRequest, match="nested too deeply"):
        jsontext.dumps(value)


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("[" + "1," * 150_000 + "1]", True),
        ("[" + "1," * 200_000 + "1]", False),
        ("[" + "12345678," * 200_000 + "1]", True),
        ("[" + "[]," * 100_000 + "1]", False),
        ('["' + ",[{" * 200_000 + '"]', True),
    ],
    ids=["an image", "more numbers", "longer numbers", "arrays", "a text"],
)
def test_a_text_may_hold_so_many_values(text: str, good: bool) -> None:
    if good:
        assert jsontext.loads(text.encode()) == json.loads(text)
    else:
        with pytest.raises(InvalidRequest, match=r"may hold 1\d+ values"):
            jsontext.loads(text.encode())


def _is_refused(parse: Callable[[bytes], object], body: bytes) -> None:
    with pytest.raises(InvalidRequest, match=r"may hold \d+ values|more than 10000 members"):
        parse(body)


def test_a_body_of_more_names_than_it_may_have_is_refused_without_a_step_for_each() -> None:
    body = ('{"parameters":{' + ",".join(f'"k{n:06}":1' for n in range(300_000)) + "}}").encode()
    for parse in (jsontext.load_object, lambda data: json_members.split_body(data.decode(), "parameters")):
        assert steps(partial(_is_refused, parse, body)) < 10_000


def test_a_name_that_is_there_twice_is_refused_wherever_it_is() -> None:
    for body in ('{"a":1,"a":2}', '{"p":{"a":1,"a":2}}', '{"p":{},"p":{}}', '{"p":{},"p":1}', '{"p":1,"p":{}}'):
        with pytest.raises(InvalidRequest, match="Duplicate field"):
            json_members.split_body(body, "p")
    assert json_members.split_body('{"a":[1, 2],"p":{"b":"c"}}', "p") == ({"a": "[1, 2]"}, {"b": '"c"'})
    assert json_members.split_body('{"p":7}', "p") == ({"p": "7"}, None)
