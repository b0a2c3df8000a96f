"""JSON as only a lenient parser takes it: comments, blanks and empty strings anywhere. It is read as without them."""

import json
import re
from itertools import chain, cycle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from integration_tests.fuzz.bounds import TIMEOUT_SECONDS, corpus, show, tries
from integration_tests.fuzz.mutations import TOKENS, Edit, edited, edits, json_values

from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.connectors.predict.inputs import read_predict_input
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.extensions.v2.protocol.json_requests import read_request

pytestmark = pytest.mark.timeout(TIMEOUT_SECONDS)

NAMES = ["", "parameters", "text_docs", "inputs", "name", "shape", "datatype", "data", "text_input", "//", "/*"]
READERS = [jsontext.loads, jsontext.load_object, read_predict_input, read_request]
COMMENTS = ["", " ", "\t\r\n", "//\n", '// " { /* \n', "/**/", '/* " } // */', "/***/", "//\r\n", "/*\n*/"]
LENIENT = [*(comment.encode() for comment in COMMENTS), b"/*", b"//", b"/", b"*/", b'""', b'"', b"\\", b"\xc2\xa0"]
GAPS = st.lists(st.sampled_from(COMMENTS), min_size=1, max_size=6)
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[][{},:]|[^][{},:"\s]+')


def with_gaps(value: Any, gaps: list[str]) -> bytes:
    """The value as JSON, with these texts before, between and behind its tokens."""
    tokens = _TOKEN.findall(json.dumps(value))
    pairs = zip(cycle(gaps), ["", *tokens], strict=False)
    return ("".join(chain.from_iterable((token, gap) for gap, token in pairs))).encode()


def refused(read: Any, data: bytes) -> str:
    """Why the bytes are refused; "" where they are read."""
    try:
        read(data)
    except MLStreamError as error:
        assert error.status in (400, 422) and error.reason
        return error.reason
    return ""


@pytest.mark.parametrize("case", corpus("lenient_json"))
def test_a_body_that_once_failed_is_read_or_refused(case: dict[str, str]) -> None:
    for read in READERS:
        refused(read, case["data"].encode("latin-1"))


@tries(400)
@given(json_values(NAMES), GAPS)
def test_comments_and_blanks_change_no_value(value: Any, gaps: list[str]) -> None:
    data = with_gaps(value, gaps)
    show("lenient_json", data=data.decode("latin-1"))
    assert jsontext.loads(data) == json.loads(json.dumps(value))
    for read in READERS:
        assert bool(refused(read, data)) == bool(refused(read, json.dumps(value).encode()))


@tries(400)
@given(json_values(NAMES), GAPS, edits([*LENIENT, *TOKENS]))
def test_a_damaged_body_is_read_or_refused(value: Any, gaps: list[str], changes: list[Edit]) -> None:
    data = edited(with_gaps({"parameters": value}, gaps), changes)
    show("lenient_json", data=data.decode("latin-1"))
    for read in READERS:
        refused(read, data)
