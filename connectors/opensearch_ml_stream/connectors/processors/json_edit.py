"""Edit a JSON document in place at the nodes that a JSONPath matches: find, set, remove."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from opensearch_ml_stream.connectors.syntax.jsonpath import JSONPath, compile_path


class Document:
    """A JSON value that is edited in place; `root` is replaced if the path is that of the whole document."""

    def __init__(self, root: Any) -> None:
        self.root = root


@dataclass(frozen=True, slots=True)
class Node:
    """A value in a document (RFC 9535: node), with its location as names and indexes."""

    value: Any
    replace: Callable[[Any], None]
    location: tuple[str | int, ...]


def find_nodes(document: Document, path: JSONPath) -> list[Node]:
    """Return the nodes that the path matches, none if it leads nowhere."""
    return [Node(match.obj, _replacer(document, match.parts), match.parts) for match in path.find_nodes(document.root)]


def set_value(document: Document, path: JSONPath, value: Any) -> bool:
    """Set the value at every node of the path; return whether it could be set.

    If there is no node and the path ends in a name, the name is added to the objects before it.
    """
    nodes = find_nodes(document, path)
    for node in nodes:
        node.replace(value)
    return bool(nodes) or _add_member(document, path, value)


def remove(document: Document, path: JSONPath) -> None:
    """Remove every node of the path, none if it leads nowhere. The root cannot be removed."""
    # From the last to the first, so that an index still means the same element when its turn comes.
    for node in sorted(find_nodes(document, path), key=lambda node: _sort_key(node.location), reverse=True):
        if node.location:
            del _container(document.root, node.location)[node.location[-1]]


def _add_member(document: Document, path: JSONPath, value: Any) -> bool:
    parent, dot, name = path.source.rpartition(".")
    if not dot or not name or "]" in name or "*" in name:
        return False
    parents = [node for node in find_nodes(document, compile_path(parent or "$")) if isinstance(node.value, dict)]
    for node in parents:
        node.value[name] = value
    return bool(parents)


def _replacer(document: Document, location: tuple[str | int, ...]) -> Callable[[Any], None]:
    def replace(value: Any) -> None:
        if location:
            _container(document.root, location)[location[-1]] = value
        else:
            document.root = value

    return replace


def _container(root: Any, location: tuple[str | int, ...]) -> Any:
    """Return the object or array that holds the node at `location`."""
    for part in location[:-1]:
        root = root[part]
    return root


def _sort_key(location: tuple[str | int, ...]) -> tuple[tuple[int, str | int], ...]:
    """Return a key that sorts indexes by number and names by text, without comparing the one with the other."""
    return tuple((0, part) if isinstance(part, int) else (1, part) for part in location)
