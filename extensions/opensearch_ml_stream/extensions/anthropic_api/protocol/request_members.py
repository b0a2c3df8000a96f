"""Read the members of a request's body by type. Errors name a member by its path, as Anthropic's do."""

from collections.abc import Iterable, Mapping, Set
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest


class Members:
    """The members of an object of a request's body; null counts as absent.

    Members that were not read are unknown: `leave` collects them, unless they are empty.
    """

    __slots__ = ("_left", "path")

    def __init__(self, value: Any, path: str = "") -> None:
        if not isinstance(value, Mapping):
            raise wrong(path, "Input should be an object")
        self.path = path
        self._left: dict[str, Any] = {name: member for name, member in value.items() if member is not None}

    def path_of(self, name: str) -> str:
        """Return the path of a member."""
        return f"{self.path}.{name}" if self.path else name

    def has_any(self, names: Set[str]) -> bool:
        """Return whether any of these is there: one check instead of a read of each, since mostly none is."""
        return not self._left.keys().isdisjoint(names)

    def take(self, name: str) -> Any:
        """Return a member of any type, None if there is none."""
        return self._left.pop(name, None)

    def required(self, name: str) -> Any:
        """Return a member of any type. InvalidRequest if there is none."""
        value = self.take(name)
        if value is None:
            raise wrong(self.path_of(name), "Field required")
        return value

    def text(self, name: str) -> str:
        """Return a string, "" if there is none."""
        value = self.take(name)
        if value is not None and not isinstance(value, str):
            raise wrong(self.path_of(name), "Input should be a valid string")
        return value or ""

    def required_text(self, name: str) -> str:
        """Return a string. InvalidRequest if there is none."""
        if name not in self._left:
            raise wrong(self.path_of(name), "Field required")
        return self.text(name)

    def integer(self, name: str) -> int | None:
        """Return an integer that is not negative, None if there is none."""
        value = self.take(name)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
            raise wrong(self.path_of(name), "Input should be a valid integer that is not negative")
        return value

    def number(self, name: str) -> int | float | None:
        """Return a number, None if there is none."""
        value = self.take(name)
        if value is not None and (not isinstance(value, int | float) or isinstance(value, bool)):
            raise wrong(self.path_of(name), "Input should be a valid number")
        return value

    def flag(self, name: str) -> bool | None:
        """Return a boolean, None if there is none."""
        value = self.take(name)
        if value is not None and not isinstance(value, bool):
            raise wrong(self.path_of(name), "Input should be a valid boolean")
        return value

    def elements(self, name: str) -> Iterable[tuple[str, Any]]:
        """Return the elements of a list with their paths, none if there is no list."""
        value = self.take(name)
        if value is not None and not isinstance(value, list):
            raise wrong(self.path_of(name), "Input should be a valid list")
        return [(f"{self.path_of(name)}.{place}", element) for place, element in enumerate(value or ())]

    def object(self, name: str) -> Mapping[str, Any] | None:
        """Return an object as it is, None if there is none."""
        value = self.take(name)
        if value is not None and not isinstance(value, Mapping):
            raise wrong(self.path_of(name), "Input should be an object")
        return value

    def members(self, name: str) -> "Members | None":
        """Return the members of an object, None if there is none."""
        value = self.take(name)
        return None if value is None else Members(value, self.path_of(name))

    def leave(self, unknown: dict[str, Any]) -> None:
        """Add the members that were not read to `unknown`, by their paths."""
        for name, value in self._left.items():
            if value is not False and value not in ("", [], {}):
                unknown[self.path_of(name)] = value


def wrong(path: str, what: str) -> InvalidRequest:
    """Return the error for what is wrong at a path of the body, "" for the body itself."""
    return InvalidRequest(f"{path}: {what}" if path else f"The request body: {what}")
