"""Conversations from each client's API to each provider's: nothing is lost but what is refused, and nothing breaks."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from itertools import groupby
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from integration_tests.fuzz.bounds import TIMEOUT_SECONDS, corpus, show, tries
from integration_tests.fuzz.mutations import json_values, replaced

from opensearch_ml_stream.connectors.conversation.conversation import (
    Conversation,
    Part,
    Reasoning,
    Result,
    ToolChoice,
    Turn,
)
from opensearch_ml_stream.connectors.conversation.conversation_request import written_body
from opensearch_ml_stream.connectors.conversation.dialect import OPENAI_COMPLETIONS, Dialect
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.syntax.jsontext import to_json
from tests.client_dialects.any_conversation import conversations, kind_of, words_of
from tests.client_dialects.clients import CHAT, CLIENTS, MESSAGES, RESPONSES, Client
from tests.client_dialects.dialects_page import Recording, shipped_dialects
from tests.client_dialects.rich_bodies import RICH_BODIES
from tests.counted_work import steps

pytestmark = pytest.mark.timeout(TIMEOUT_SECONDS)

DIALECTS = {title: dialect for title, dialect in shipped_dialects().items() if dialect.name != OPENAI_COMPLETIONS}
# Of the clients that converse, the dialect that writes their requests with most in it.
WRITERS = {CHAT: DIALECTS["OpenRouter"], RESPONSES: DIALECTS["OpenAI Responses"], MESSAGES: DIALECTS["Anthropic"]}
READERS = {client.dialect: client for client in WRITERS}
BY_PRODUCTS = {"thought", "proof"}  # of earlier answers: left out where the provider has no use for them
# What is refused where a word of a kind is missing, by the last name in the member's path.
REFUSED_WITH = {
    "image": {"image"}, "audio": {"audio"}, "file": {"file"}, "schema": {"answer_format", "response_format", "format"},
}  # fmt: skip


def asked(client: Client, conversation: Conversation) -> tuple[dict[str, Any], Conversation]:
    """The body of a client that asks for a conversation, without what its API has no place for; and as it is read."""
    body = WRITERS[client].write(conversation, Recording(frozenset(), client.title))
    if client is MESSAGES:
        body.setdefault("max_tokens", 5000)
    return body, client.read(body)


def written(dialect: Dialect, conversation: Conversation) -> tuple[dict[str, Any], set[str]]:
    """What a dialect writes, and the last names of the members that it refused."""
    refuse = Recording(frozenset(), dialect.name)
    body = dialect.write(conversation, refuse)
    return body, {member.rpartition(".")[2] for member in refuse.refused}


def spoken(conversation: Conversation) -> list[tuple[str, list[str]]]:
    """Who says which words, one after the other; a result's images are its user's, results come first."""
    turns = [("system" if turn.role == "developer" else turn.role, turn) for turn in conversation.turns]
    return [
        (speaker, sorted(word for _, turn in group for part in turn.parts for word in words_of(plain(part))))
        for speaker, group in groupby(turns, lambda named: named[0])
    ]  # fmt: skip


def plain(part: Part) -> Part:
    """A result without its tool's name, which is said with the call."""
    return replace(part, name="") if isinstance(part, Result) else part


def without_by_products(conversation: Conversation) -> Conversation:
    turns = (
        Turn(turn.role, tuple(part for part in turn.parts if not isinstance(part, Reasoning)), turn.name)
        for turn in conversation.turns
    )
    return replace(conversation, turns=tuple(turn for turn in turns if turn.parts))


@pytest.mark.parametrize("client", WRITERS, ids=lambda client: client.dialect)
@tries(150)
@given(st.data())
def test_every_word_arrives_or_is_refused(client: Client, data: st.DataObject) -> None:
    _, conversation = asked(client, data.draw(conversations()))
    words = set(words_of((conversation.turns, conversation.tools, conversation.answer_format)))
    for title, dialect in DIALECTS.items():
        body, refused = written(dialect, conversation)
        missing = words - set(words_of(to_json(body).decode()))
        lost = {word for word in missing if not REFUSED_WITH.get(kind_of(word), set()) & refused}
        lost -= {word for word in lost if kind_of(word) in BY_PRODUCTS}
        if conversation.tool_choice is not None and conversation.tool_choice.mode in ("none", "named"):
            lost -= {word for word in lost if kind_of(word) in ("name", "tool", "schema")}  # tools not to be called
        assert lost == set(), (title, refused, body)


@pytest.mark.parametrize("client", WRITERS, ids=lambda client: client.dialect)
@tries(150)
@given(st.data())
def test_what_is_written_in_a_dialect_of_clients_is_read_as_the_same_conversation(
    client: Client, data: st.DataObject
) -> None:
    _, conversation = asked(client, data.draw(conversations()))
    conversation = without_by_products(conversation)
    for title, dialect in DIALECTS.items():
        body, refused = written(dialect, conversation)
        if (reader := READERS.get(dialect.name)) is None or title in OF_OTHER_FORM or refused & KINDS_OF_MEDIA:
            continue
        again = reader.read({"max_tokens": 5000, **body} if reader is MESSAGES else body)
        assert again.unknown.keys() <= OF_VARIANTS, title
        assert spoken(again) == spoken(conversation), title
        assert [tool.name for tool in again.tools] == [tool.name for tool in conversation.tools], title
        for name, (said, read) in compared(conversation, again).items():
            assert read == said or conversation.member(name).rpartition(".")[2] in refused, (title, name)


OF_OTHER_FORM = {"Mistral", "watsonx"}  # parts, and the choice of tools, which the clients' API has otherwise
KINDS_OF_MEDIA = {"image", "audio", "file"}
# Members for reasoning, of some providers of chat completions.
OF_VARIANTS = {"thinking", "enable_thinking", "thinking_budget", "reasoning"}


def compared(conversation: Conversation, again: Conversation) -> dict[str, tuple[Any, Any]]:
    """What is asked of the answer in two conversations; a choice that is the model's, or several calls, is as none."""
    auto = ToolChoice("auto")
    both = [
        {
            **{name: one.options.get(name) for name in ("temperature", "top_p", "top_k", "stop", "seed", "user")},
            "tool_choice": one.tool_choice or auto,
            "parallel_tool_calls": one.parallel_tool_calls is not False or (one.tool_choice or auto).mode == "none",
        }
        for one in (conversation, again)
    ]
    return {name: (both[0][name], both[1][name]) for name in both[0]}


ODD_TEXTS = [
    "", "\ud83d", "\x00", "data:", "data:;base64,", "data:text/plain;base64,zzz", "data:x/y;base64,\u00e9", "{", "[]",
    "null", "1e999", '{"a":NaN}', "http://[", "s3://b/k", "signature:", "auto", "none", "x" * 3000,
]  # fmt: skip
ODD_NUMBERS = [0, -1, 10**400, 2**64, 1e308, 1.5, True, float("inf")]


@st.composite
def odd_bodies(draw: st.DrawFn) -> tuple[Client, Any]:
    """A body that says all that a client can say, one or two of whose values are others."""
    client = draw(st.sampled_from(CLIENTS))
    body: Any = deepcopy(RICH_BODIES[client.dialect])
    odd: st.SearchStrategy[Any] = st.sampled_from([*ODD_TEXTS, *ODD_NUMBERS, None, [], {}])
    values = odd | json_values(NAMES)
    return client, replaced(body, [(draw(st.integers(0, 500)), draw(values)) for _ in range(draw(st.integers(1, 2)))])


NAMES = ["type", "role", "content", "text", "source", "function", "name", "arguments", "id", "input", "tools", "mode"]


def check(client: Client, body: Any) -> None:
    """A body is a conversation for every provider, or an error that says what is wrong."""
    try:
        client.read(body)
    except InvalidRequest as error:
        assert error.reason
        return
    for title, dialect in shipped_dialects().items():
        try:
            to_json(written_body(client.request(body), dialect, Recording(frozenset(), title)))
        except InvalidRequest as error:
            assert error.reason


@pytest.mark.parametrize("case", corpus("conversations"))
def test_a_body_that_once_failed_is_a_conversation_or_an_error(case: dict[str, Any]) -> None:
    (client,) = [client for client in CLIENTS if client.dialect == case["client"]]
    check(client, case["body"])


@tries(1500)
@given(odd_bodies())
def test_any_body_is_a_conversation_or_an_error(case: tuple[Client, Any]) -> None:
    client, body = case
    show("conversations", client=client.dialect, body=body)
    check(client, body)


def _chat(messages: Sequence[Any]) -> dict[str, Any]:
    return {"messages": messages}


CALL = {"type": "function", "function": {"name": "f", "arguments": "{}"}}
GROWING: list[tuple[Client, Callable[[int], dict[str, Any]]]] = [
    (CHAT, lambda size: _chat([{"role": "user", "content": "a"}] * size)),
    (CHAT, lambda size: _chat([{"role": "system", "content": "a"}, {"role": "assistant", "content": "b"}] * size)),
    (CHAT, lambda size: _chat([{"role": "user", "content": [{"type": "text", "text": "a"}] * size}])),
    (
        CHAT,
        lambda size: _chat([
            {"role": "assistant", "tool_calls": [{**CALL, "id": f"c{place}"} for place in range(size)]},
            *({"role": "tool", "tool_call_id": f"c{place}", "content": "r"} for place in range(size)),
        ]),
    ),
    (
        CHAT,
        lambda size: _chat(
            [{"role": "assistant", "tool_calls": [{**CALL, "id": f"c{place}"}]} for place in range(size)]
        ),
    ),
    (MESSAGES, lambda size: {
        "max_tokens": 9, "messages": [{"role": "user", "content": [{"type": "text", "text": "a"}] * size}],
    }),
    (MESSAGES, lambda size: {
        "max_tokens": 9, "messages": [{"role": "assistant", "content": [
            {"type": "thinking", "thinking": "a", "signature": "b"}] * size}],
    }),
    (MESSAGES, lambda size: {
        "max_tokens": 9, "cache_control": {"type": "ephemeral"}, "messages": [
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "a", "signature": "b"}]}] * size,
    }),
    (RESPONSES, lambda size: {"input": [{"type": "function_call", "call_id": "a", "name": "f"}] * size}),
    (RESPONSES, lambda size: {"input": [{"role": "user", "content": "a"}], "tools": [
        {"type": "function", "name": f"f{place}"} for place in range(size)]}),
]  # fmt: skip


@pytest.mark.parametrize(("client", "grow"), GROWING)
def test_twice_the_conversation_is_twice_the_work(client: Client, grow: Callable[[int], dict[str, Any]]) -> None:
    small, large = (client.read(grow(size)) for size in (100, 200))
    for title, dialect in DIALECTS.items():
        twice = steps(lambda: written(dialect, large))  # noqa: B023
        assert twice <= 2.2 * steps(lambda: written(dialect, small)) + 200, title  # noqa: B023
