"""Bodies that nobody means: each is a conversation or an error that names what is wrong, in work linear in its size."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.extensions.openai_api.protocol.completions_request import (
    read_chat_request,
    read_completions_request,
)
from opensearch_ml_stream.extensions.openai_api.protocol.embeddings import read_embeddings_request
from opensearch_ml_stream.extensions.openai_api.protocol.responses_request import read_responses_request
from opensearch_ml_stream.extensions.openai_api.protocol.responses_tools import client_tools
from tests.counted_work import steps

_WORDS = [
    "messages", "role", "content", "type", "text", "image_url", "url", "input_audio", "file", "tool_calls", "function",
    "name", "arguments", "tools", "tool_choice", "allowed_tools", "mode", "response_format", "json_schema", "schema",
    "stop", "user", "assistant", "tool", "system", "tool_call_id", "function_call", "functions", "stream_options",
    "prompt", "input", "model", "n", "logprobs", "data:;base64,", "data:,", "auto", "reasoning_effort", "audio", "id",
    "custom", "namespace", "format", "definition", "additional_tools", "custom_tool_call", "call_id",
]  # fmt: skip
_WORD = st.sampled_from(_WORDS)
_LEAF = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | _WORD | st.text(max_size=3)
_VALUE = st.recursive(
    _LEAF, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_WORD, inner, max_size=6), max_leaves=40
)
_MESSAGE = st.dictionaries(_WORD, _VALUE, max_size=6) | st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool", "function", "system"]), "content": _VALUE}
)


@given(st.dictionaries(_WORD, _VALUE, max_size=8), st.lists(_MESSAGE, max_size=4))
def test_any_json_is_read_or_refused(body: dict[str, Any], messages: list[Any]) -> None:
    readers: list[Callable[[dict[str, Any]], Any]] = [
        read_chat_request, read_completions_request, read_embeddings_request, read_responses_request, client_tools,
    ]  # fmt: skip
    for read in readers:
        for asked in (body, {**body, "messages": messages, "input": messages, "tools": messages}):
            try:
                read(asked)
            except InvalidRequest as error:
                assert error.reason


@pytest.mark.parametrize(
    "grow",
    [
        lambda size: {"messages": [{"role": "user", "content": "a"}] * size},
        lambda size: {"messages": [{"role": "tool", "tool_call_id": "a", "content": "b"}] * size},
        lambda size: {"messages": [{"role": "user", "content": [{"type": "text", "text": "a", "x": 1}] * size}]},
        lambda size: {"messages": [{"role": "user", "content": [{"type": "x"}] * size}]},
        lambda size: {"messages": [], "tools": [{"type": "function", "function": {"name": "f", "x": 1}}] * size},
        lambda size: {"messages": [], "stop": ["a"] * size},
        lambda size: {"messages": [], **{f"x{place}": 1 for place in range(size)}},
    ],
)
def test_twice_the_body_is_twice_the_work(grow: Callable[[int], dict[str, Any]]) -> None:
    small, large = grow(300), grow(600)
    assert steps(lambda: read_chat_request(large)) <= 2.1 * steps(lambda: read_chat_request(small)) + 50


@pytest.mark.parametrize(
    "item",
    [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": []},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "a"}]},
        {"type": "function_call", "call_id": "a", "name": "b", "x": 1},
        {"type": "function_call_output", "call_id": "a", "output": "b"},
        {"type": "made_up"},
    ],
)
def test_twice_the_items_are_twice_the_work(item: dict[str, Any]) -> None:
    def reading(size: int) -> int:
        return steps(lambda: read_responses_request({"input": [item] * size}))

    assert reading(600) <= 2.1 * reading(300) + 50


def test_a_long_data_url_takes_no_more_steps_than_a_short_one() -> None:
    def reading(size: int) -> int:
        part = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * size}}
        body = {"messages": [{"role": "user", "content": [part]}]}
        return steps(lambda: read_chat_request(body))

    reading(4)  # what is made at the first use
    assert reading(5_000_000) == reading(4)
