"""Values of parameters as callers write them: JSON texts, of every kind that has ever been sent wrongly."""

import json
from typing import Any

from hypothesis import strategies as st

Values = st.SearchStrategy[str]

HOSTILE = [
    "", " ", "a \"quoted\" text", "C:\\temp\\new", "two\nlines\r\n\ttab", "日本 é 😀 \u2028 \x7f", "</script>&'",
    "${parameters.model}", "${parameters.inputs}", "$${parameters.x}", "${credential.openAI_key}", "${", "}",
    '{"a":1}', '["x"]', '"x"', "null", "true", "7", "1e3", "\x00\x1f", "\\u0041", '\\"', "%s {} {{x}}",
]  # fmt: skip
TEXTS = st.sampled_from(HOSTILE) | st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_NUMBERS = ["0", "-0", "0.10", "1.0", "1e0", "1E-7", "0.30000000000000004", "2", "0.1234567890123456789012"]


def _json(value: Any) -> Values:
    """Write a value as clients do: with non-ASCII characters as they are, or escaped."""
    return st.booleans().map(lambda ascii: json.dumps(value, ensure_ascii=ascii))


def _turns(name: str, roles: list[str], content: st.SearchStrategy[Any]) -> Values:
    turn = st.fixed_dictionaries({"role": st.sampled_from(roles), name: content})
    return st.lists(turn, min_size=1, max_size=3).flatmap(_json)


STRINGS = TEXTS.flatmap(_json)
NUMBERS = st.sampled_from(_NUMBERS)
COUNTS = st.sampled_from(["1", "4096", "123456789012345678901234567890"])
STOPS = st.lists(TEXTS, min_size=1, max_size=2).flatmap(_json)
# What a tool's or an answer's JSON Schema may hold besides; a number within it keeps its text, too.
TOOLS = STRINGS.map(
    lambda text: (
        f'[{{"type":"function","function":{{"name":"f","description":{text},"parameters":{{"type":"object","properties":'
        '{"x":{"default":null,"minimum":0.10,"enum":["${parameters.x}",1e3]}}}}}]'
    )
)
RESPONSE_FORMATS = st.sampled_from([
    '{"type":"json_object"}', '{"type":"json_schema","json_schema":{"name":"n","schema":{"const":1.0},"strict":true}}',
])  # fmt: skip
_PARTS = st.lists(st.fixed_dictionaries({"text": TEXTS}), min_size=1, max_size=2)
_CHAT_PARTS = st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": TEXTS}), min_size=1, max_size=2)
MESSAGES = _turns("content", ["user", "assistant"], TEXTS | _CHAT_PARTS)
PART_MESSAGES = _turns("content", ["user", "assistant"], _PARTS)
PARTS = _CHAT_PARTS.flatmap(_json)
GEMINI_CONTENTS = _turns("parts", ["user", "model"], _PARTS)
