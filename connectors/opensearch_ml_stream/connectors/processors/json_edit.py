"""Places in a JSON document that a JSONPath points to: read, replaced, removed, made."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from opensearch_ml_stream.connectors.syntax.jsonpath import JSONPath, compile_path


class Document:
    """A JSON value that is changed in place; `root` is replaced when the place is the whole document."""

    def __init__(self, root: Any) -> None:
        self.root = root


@dataclass(frozen=True, slots=True)
class Place:
    value: Any
    replace: Callable[[Any], None]
    parts: tuple[str | int, ...]


def find(document: Document, path: JSONPath) -> list[Place]:
    """The places of a path, none if it leads nowhere."""
    return [Place(node.obj, _replacer(document, node.parts), node.parts) for node in path.find_nodes(document.root)]


def set_value(document: Document, path: JSONPath, value: Any) -> bool:
    """Puts the value at every place of the path, or makes the path's last name in an object; False if it cannot."""
    places = find(document, path)
    for place in places:
        place.replace(value)
    return bool(places) or _make(document, path, value)


def remove(document: Document, path: JSONPath) -> None:
    """Takes away every place of the path; a path that leads nowhere takes nothing."""
    # From the last to the first, so that an index still means the same element when its turn comes.
    for place in sorted(find(document, path), key=lambda place: _order(place.parts), reverse=True):
        if place.parts:
            del _container(document.root, place.parts)[place.parts[-1]]


def _make(document: Document, path: JSONPath, value: Any) -> bool:
    parent, dot, name = path.source.rpartition(".")
    if not dot or not name or "]" in name or "*" in name:
        return False
    parents = [place for place in find(document, compile_path(parent or "$")) if isinstance(place.value, dict)]
    for place in parents:
        place.value[name] = value
    return bool(parents)


def _replacer(document: Document, parts: tuple[str | int, ...]) -> Callable[[Any], None]:
    def replace(value: Any) -> None:
        if parts:
            _container(document.root, parts)[parts[-1]] = value
        else:
            document.root = value

    return replace


def _container(root: Any, parts: tuple[str | int, ...]) -> Any:
    for part in parts[:-1]:
        root = root[part]
    return root


def _order(parts: tuple[str | int, ...]) -> tuple[tuple[int, str | int], ...]:
    """Sorts indexes by number and names by text, without comparing the one with the other."""
    return tuple((0, part) if isinstance(part, int) else (1, part) for part in parts)
