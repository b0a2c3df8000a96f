r"""The texts of a payload: nothing hides behind escapes, or behind the parts that a message is divided into."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.predict.guardrails.patterns import GuardPattern
from opensearch_ml_stream.connectors.predict.guardrails.payload_texts import (
    MAX_LEVELS,
    payload_texts,
    readable_text,
    refusing_pattern,
)

PATTERNS = (GuardPattern.compile(".*other.*"), GuardPattern.compile(".*badword.*"))


def parts(*texts: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text} for text in texts]


@pytest.mark.parametrize(
    "payload",
    [
        '{"inputs": "a badword"}',
        '{"badword": 1}',
        r'{"inputs": "\u0062adword"}',
        r'{"inputs": "b\u0061d\u0077ord and \ud800"}',
        r'{"inputs": ["x", {"y": "\u0062adword"}]}',
        '{\n  "inputs": "a\n badword"\n}',
        r'{"inputs": "first\nbadword\nlast"}',
        '{"a": 1}\n{"inputs": "\\u0062adword"}\n',
        r'{"a": "\u0062adword", "a": "good"}',
        r'not JSON, but "\u0062adword"',
        '{"messages": [{"role": "user", "content": ' + json.dumps(parts("a bad", "word")) + "}]}",
        '{"messages": [{"role": "user", "content": ["a bad", "word"]}]}',
        '{"messages": [{"role": "user", "content": ["a bad", {"type": "text", "text": "word"}]}]}',
        '{"contents": [{"parts": [{"text": "bad"}, {"inline_data": {}}, {"text": "word"}]}]}',
        '{"content": [{"type": "refusal", "refusal": "bad"}, {"text": "word"}]}',
        '{"content": [{"type": "thinking", "thinking": "bad"}, {"text": "-"}, {"thinking": "word"}]}',
        '{"content": [{"source": {"type": "text", "data": "bad"}}, {"text": "word"}]}',
        '{"content": [{"text": "bad"}, {"source": {"type": "text", "data": "-"}}, {"text": "word"}]}',
        '{"system": ' + json.dumps(parts("bad", "word")) + "}",
        '{"x": 1}\n' + json.dumps({"content": parts(r"ba", "dword")}),
        r'{"content": [{"t\u0065xt": "bad"}, {"text": "\u0077ord"}]}',
        '{"n": ' + "9" * 5000 + ', "content": ' + json.dumps(parts("bad", "word")) + "}",
        json.dumps({"arguments": r'{"q": "\u0062adword"}'}),
        json.dumps({"arguments": json.dumps({"a": r'{"q": "\u0062adword"}'})}),
        json.dumps({"arguments": json.dumps({"content": ["bad", "word"]})}),
        json.dumps({"arguments": r'{"odd \escape": "\u0062adword\ud83d\ude00"}'}),
        json.dumps({"arguments": r'{"cut short": "\u0062adword'}),
        json.dumps({"arguments": r'{"cut short": "\u0062adword' + "\\"}),
        json.dumps({"text": r'Call it with {"q": "\u0062adword"}.'}),
    ],
)
def test_a_word_is_found_however_the_payload_writes_it(payload: str) -> None:
    assert refusing_pattern(PATTERNS, payload) == 1


@pytest.mark.parametrize(
    "payload",
    [
        '{"inputs": "good"}',
        '{"input": ["a bad", "word"]}',
        '{"messages": [{"content": "bad"}, {"content": "word"}]}',
        '{"content": [{"source": {"type": "base64", "data": "bad"}}, {"text": "word"}]}',
        '{"content": [{"text": 1}, {"text": "word"}, {"image": "bad"}]}',
        "",
        "null",
        'not JSON, but "good"',
        r'{"inputs": "no \escape"}',
        '{"a": 1}\n\n{"b": 2}\n',
    ],
)
def test_texts_of_their_own_are_not_joined(payload: str) -> None:
    assert refusing_pattern(PATTERNS, payload) is None


def test_a_pattern_may_match_the_whole_of_any_string() -> None:
    assert refusing_pattern([GuardPattern.compile("yes.*")], '{"inputs": "yes, do"}') == 0
    assert refusing_pattern([GuardPattern.compile("yes.*")], '{"inputs": "oh yes"}') is None


@given(value=st.recursive(st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_every_string_of_a_payload_is_among_its_texts(value: Any) -> None:
    def strings(node: Any) -> set[str]:
        if isinstance(node, dict):
            return {text for pair in node.items() for item in pair for text in strings(item)}
        if isinstance(node, list):
            return {text for item in node for text in strings(item)}
        return {node}

    for ascii in (True, False):
        payload = json.dumps(value, ensure_ascii=ascii)
        assert {*payload_texts(payload)} >= strings(value) | {payload}


def test_a_payload_without_anything_hidden_is_read_as_it_is() -> None:
    payload = '{"messages": [{"role": "user", "content": [{"type": "text", "text": "hello"}]}]}'
    assert readable_text(payload) == payload


def test_what_is_hidden_follows_the_payload_in_plain_text() -> None:
    payload = '{"a": "\\u0062ad", "content": [{"text": "wo\\ud800"}, {"text": "rd"}]}'
    assert readable_text(payload) == f"{payload}\nbad\nwo?\nwo?rd"


def test_a_payload_that_is_nested_too_deeply_is_not_passed_unread() -> None:
    payload = "[" * 100_000 + "]" * 100_000
    with pytest.raises(UpstreamError, match="nested too deeply"):
        refusing_pattern(PATTERNS, payload)
    with pytest.raises(UpstreamError, match="nested too deeply"):
        readable_text(payload)


def test_json_in_strings_of_json_is_read_to_its_end_or_not_at_all() -> None:
    nested = r'"\u0062adword"'
    for _ in range(MAX_LEVELS - 1):
        nested = json.dumps(nested)
    assert refusing_pattern(PATTERNS, nested) == 1
    with pytest.raises(UpstreamError, match="nested too deeply"):
        refusing_pattern(PATTERNS, json.dumps(nested))


@pytest.mark.parametrize("end", ["", "\\"])
def test_a_string_that_nothing_ends_goes_on_to_the_end(end: str) -> None:
    """So that no search for an end fails, which would begin again behind every quote."""
    assert [*payload_texts('"' + '\\"' * 3 + end)][1:2] == ['"""']


def test_what_is_hidden_in_a_string_of_json_follows_the_payload_in_plain_text() -> None:
    payload = json.dumps({"a": r'{"q": "\u0062ad"}'})
    assert readable_text(payload) == payload + '\n{"q": "\\u0062ad"}\nbad'
