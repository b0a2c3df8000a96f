"""A conversation with all that providers have in common, and what a dialect makes of one."""

from dataclasses import replace
from typing import Any

from opensearch_ml_stream.connectors.conversation.conversation import (
    Call,
    Conversation,
    Media,
    Part,
    Reasoning,
    Result,
    Role,
    Text,
    Tool,
    Turn,
)
from opensearch_ml_stream.connectors.conversation.dialect import Dialect
from opensearch_ml_stream.connectors.errors import InvalidRequest

WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = (Tool("weather", "Weather of a city", WEATHER), Tool("now"))
PICTURE = Media("image", media_type="image/png", data="iVBORw0K")
CALLS = (Call("c1", "weather", '{"city":"Ulm"}'), Call("c2", "now", ""))


def turn(role: Role, *parts: Part | str, name: str = "") -> Turn:
    return Turn(role, tuple(Text(part) if isinstance(part, str) else part for part in parts), name)


def said(*parts: Part | str, **more: Any) -> Conversation:
    """A conversation of one turn of the user."""
    return Conversation((turn("user", *parts),), **more)


RICH = Conversation(
    turns=(
        turn("system", "Be short."),
        turn("user", "What is this?", PICTURE),
        turn("assistant", Reasoning("A church: Ulm.", "c2ln"), "I look.", *CALLS),
        turn("user", Result("c1", (Text("rain"),)), Result("c2", (Text("no clock"),), is_error=True)),
        turn("developer", "In verse."),
        turn("user", "Now?"),
    ),
    tools=TOOLS,
    options={"max_tokens": 100, "temperature": 0.5, "top_p": 0.9, "top_k": 40, "seed": 7, "presence_penalty": 0.1},
)


def write(dialect: Dialect, conversation: Conversation) -> dict[str, Any]:
    """What a dialect writes; a refusal fails."""
    return dialect.write(conversation, _raise)


def refused(dialect: Dialect, conversation: Conversation) -> list[str]:
    """What a dialect refuses, of a model that drops all of it."""
    members: list[str] = []
    dialect.write(conversation, lambda member, why="": members.append(member))
    return members


def without_reasoning(conversation: Conversation) -> Conversation:
    turns = (
        replace(one, parts=tuple(part for part in one.parts if not isinstance(part, Reasoning)))
        for one in conversation.turns
    )
    return replace(conversation, turns=tuple(turns))


def _raise(member: str, why: str = "") -> None:
    raise InvalidRequest(f"[{member}]: {why}")
