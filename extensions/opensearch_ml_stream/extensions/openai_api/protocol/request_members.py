"""Read the members of a client's JSON one by one, by their types. Members that were not read are unknown."""

from collections.abc import Mapping, Set
from typing import Any, TypeVar

from opensearch_ml_stream.connectors.errors import InvalidRequest

T = TypeVar("T")

_KINDS: Mapping[type, str] = {
    str: "a string",
    int: "an integer",
    float: "a number",
    bool: "true or false",
    dict: "an object",
    list: "an array",
}

_ASK_NOTHING: Mapping[str, Any] = {
    "best_of": 1,
    "echo": False,
    "frequency_penalty": 0,
    "logit_bias": {},
    "logprobs": False,
    "metadata": {},
    "modalities": ["text"],
    "n": 1,
    "presence_penalty": 0,
    "service_tier": "auto",
    "stop": [],
    "store": False,
    "suffix": "",
}
"""Values that change nothing, since they are the defaults."""

HINTS = ("prompt_cache_key", "prompt_cache_retention")
"""Hints for caching, left out where the provider has no such member: they do not change the answer."""


class Members:
    """The members of an object at a path of the body. Every read takes a member away; null is as absent."""

    def __init__(self, value: Any, path: str = "") -> None:
        if not isinstance(value, dict):
            raise InvalidRequest(f"{path or 'The request body'} must be an object")
        self._left: dict[str, Any] = dict(value)
        self._path = path

    def path(self, name: str) -> str:
        """Return the path of a member."""
        return f"{self._path}.{name}" if self._path else name

    def take(self, name: str, kind: type[T]) -> T | None:
        """Return a member, None where there is none. InvalidRequest names one of another kind."""
        value: T | None = self._left.pop(name, None)
        if value is not None and type(value) is not kind and not _is_of(value, kind):
            raise InvalidRequest(f"{self.path(name)} must be {_KINDS[kind]}")
        return value

    def need(self, name: str, kind: type[T]) -> T:
        """Return a member. InvalidRequest names one that is missing or of another kind."""
        value = self.take(name, kind)
        if value is None:
            raise InvalidRequest(f"{self.path(name)} is missing: it must be {_KINDS[kind]}")
        return value

    def need_name(self, name: str) -> str:
        """Return a member that is a name; InvalidRequest also for half of a surrogate pair, which is no character."""
        value = self.need(name, str)
        if not is_unicode(value):
            raise InvalidRequest(f"{self.path(name)} must be a string without halves of surrogate pairs")
        return value

    def take_any(self, name: str) -> Any:
        """Return a member of any kind, None where there is none."""
        return self._left.pop(name, None)

    def has_any(self, names: Set[str]) -> bool:
        """Return whether any of these is there: one check instead of a read of each, since mostly none is."""
        return not self._left.keys().isdisjoint(names)

    def drop(self, *names: str) -> None:
        """Leave out members that change nothing."""
        for name in names:
            self._left.pop(name, None)

    def options(self, kinds: Mapping[str, type]) -> dict[str, Any]:
        """Return those of these members that are there and not the default."""
        taken: dict[str, Any] = {name: self.take(name, kinds[name]) for name in list(self._left) if name in kinds}
        return {name: value for name, value in taken.items() if value is not None and _asks(name, value)}

    def unread(self) -> dict[str, Any]:
        """Return the members that were not read and are not the default, by path."""
        return {
            self.path(name): value for name, value in self._left.items() if _asks(name, value) and not _is_empty(value)
        }


def is_unicode(text: str) -> bool:
    """Return whether a string can be encoded: JSON may hold half of a surrogate pair, which no encoding has."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_of(value: Any, kind: type) -> bool:
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, (int, float) if kind is float else kind)


def _asks(name: str, value: Any) -> bool:
    return name not in _ASK_NOTHING or value != _ASK_NOTHING[name]


def _is_empty(value: Any) -> bool:
    """Return whether a value is null, or an object of nulls, as clients send back what an answer left empty."""
    return value is None or (isinstance(value, Mapping) and all(one is None for one in value.values()))
