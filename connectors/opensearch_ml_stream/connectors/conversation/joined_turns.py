"""A template's own turns and those of a conversation as one value, in whatever form each has."""

from collections.abc import Mapping
from typing import Any, Final

from opensearch_ml_stream.connectors.errors import InvalidRequest

NOTHING: Final = object()
"""In place of a value that is not there; None is JSON's null."""

STRUCTURE = ("role", "type")
"""Members that say what a text is, and are none."""

_BETWEEN_TEXTS = "\n\n"


class CannotBeTold(InvalidRequest):
    """The words of a connector's template cannot be told from the place that it has for a conversation."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"The connector's request_body has words of its own at [{path}], which cannot be told from the place of "
            "the conversation there"
        )


def join_turns(own: Any, said: Any, path: str) -> Any:
    """Return what the template says and then what the conversation says; CannotBeTold if their forms do not fit.

    Texts are joined by a blank line, a text and a list of parts as parts, lists one after the other, and objects
    member by member.
    """
    if said is NOTHING or own is NOTHING or own is None:
        return own if said is NOTHING else said
    if isinstance(own, str) and isinstance(said, str):
        return own + _BETWEEN_TEXTS + said if own and said else own or said
    if isinstance(own, list) and isinstance(said, list):
        return [*own, *said]
    if isinstance(own, str) and isinstance(said, list):
        return [_as_part(own, said, path), *said]
    if isinstance(own, list) and isinstance(said, str):
        return [*own, _as_part(said, own, path)]
    if isinstance(own, Mapping) and isinstance(said, Mapping):
        joined = {
            name: value if name in STRUCTURE else join_turns(value, said.get(name, NOTHING), path)
            for name, value in own.items()
        }
        return {**joined, **{name: value for name, value in said.items() if name not in own}}
    raise CannotBeTold(path)


def _as_part(text: str, parts: list[Any], path: str) -> Any:
    """Return a text as the parts of a list are written."""
    like = parts[0] if parts else ""
    if isinstance(like, str):
        return text
    if isinstance(like, Mapping) and isinstance(like.get("text"), str) and "role" not in like:
        return {"type": "text", "text": text} if "type" in like else {"text": text}
    raise CannotBeTold(path)
