"""A row of PROVIDER_REQUESTS, and the parts of rows that several providers share."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.selection import caller_values as values

Schema = Mapping[str, Any]
Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Place:
    """Where a parameter arrives in the body, within which text of the blueprint's own, and how callers write it."""

    path: Path
    written: values.Values = values.STRINGS
    before: str = ""
    after: str = ""


@dataclass(frozen=True)
class ProviderRequest:
    """A request gives one of the parameters `asks`, and any of `takes`; `streams` is what turns streaming on in it.

    The `text_docs` of a model of vectors or scores arrive at `texts`, or one for each call; it has no `asks`.
    """

    source: str
    schema: Schema
    asks: Mapping[str, Place] = field(default_factory=dict)
    takes: Mapping[str, Place] = field(default_factory=dict)
    streams: Mapping[str, Any] = field(default_factory=dict)
    texts: Path | None = None


def members(required: str, **properties: Schema) -> Schema:
    """An object with these members and no other."""
    return {
        "type": "object", "required": required.split(), "properties": properties, "additionalProperties": False,
    }  # fmt: skip


def array(items: Schema) -> Schema:
    return {"type": "array", "minItems": 1, "items": items}


def turns(content: Schema, name: str = "content", roles: str = "system developer user assistant tool") -> Schema:
    """A conversation."""
    role: Schema = {"enum": roles.split()}
    return array({"type": "object", "required": ["role", name], "properties": {"role": role, name: content}})


def prompt(source: str, schema: Schema, path: Path = ("prompt",), **more: Any) -> ProviderRequest:
    """The row of a provider that takes one text."""
    return ProviderRequest(source, schema, {"inputs": Place(path), "prompt": Place(path)}, **more)


def vectors(source: str, schema: Schema, texts: Path, *strings: str) -> ProviderRequest:
    """The row of a provider of vectors or scores; `strings` are the parameters that arrive under their own names."""
    return ProviderRequest(source, schema, takes={name: Place((name,)) for name in strings}, texts=texts)


TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
COUNT: Schema = {"type": "integer", "minimum": 1}
TRUE: Schema = {"const": True}
FLAG: Schema = {"type": "boolean"}
PARTS = array({"type": "object", "required": ["text"], "properties": {"text": TEXT}})
MESSAGES = turns({"anyOf": [TEXT, array({"type": "object", "required": ["type"]})]})
USAGE = members("include_usage", include_usage=TRUE)
COHERE_TEXTS: dict[str, Schema] = {
    "texts": array(TEXT), "truncate": {"enum": ["NONE", "START", "END"]}, "input_type": TEXT,
}  # fmt: skip

ASKS = {"inputs": Place(("messages", 0, "content")), "messages": Place(("messages",), values.MESSAGES)}
ASKS_PARTS = {
    "inputs": Place(("messages", 0, "content", 0, "text")), "messages": Place(("messages",), values.PART_MESSAGES),
}  # fmt: skip
MODEL = {"model": Place(("model",))}
MAX_TOKENS = {"max_tokens": Place(("max_tokens",), values.COUNTS)}
STREAM = {"stream": True}
STREAM_AND_USAGE = {"stream": True, "stream_options": {"include_usage": True}}
