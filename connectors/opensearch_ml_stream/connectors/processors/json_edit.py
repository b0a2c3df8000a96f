"""Edit a JSON document in place at the nodes that a JSONPath matches: find, set, remove."""

import json
from typing import Any

from opensearch_ml_stream.connectors.processors.processing import Document, Processing
from opensearch_ml_stream.connectors.syntax.jsonpath import JSONPath, Node, compile_path


def set_value(document: Document, path: JSONPath, value: Any, processing: Processing) -> bool:
    """Set the value, copied, at every node of the path; return whether it could be set.

    If there is no node and the path ends in a name, the name is added to the objects before it.
    """
    text = processing.text(value) if isinstance(value, dict | list) else None
    nodes = path.find_nodes(document.root, processing.work)
    if not nodes:
        nodes = _new_members(document, path, processing)
    for node in nodes:
        if text is not None:
            processing.work.spend_on_json(text)
        document.replace(node, value if text is None else json.loads(text))
    return bool(nodes)


def remove(document: Document, path: JSONPath, processing: Processing) -> None:
    """Remove every node of the path, none if it leads nowhere. The root cannot be removed."""
    indexes: dict[int, tuple[list[Any], set[int]]] = {}
    for node in path.find_nodes(document.root, processing.work):
        if isinstance(node.container, dict):
            node.container.pop(node.key, None)
        elif node.container is not None:
            indexes.setdefault(id(node.container), (node.container, set()))[1].add(node.key)
    for array, removed in indexes.values():
        processing.work.spend(1 + len(array) // 8)
        array[:] = [item for index, item in enumerate(array) if index not in removed]


def _new_members(document: Document, path: JSONPath, processing: Processing) -> list[Node]:
    """Return the places where a path that ends in a name would add it."""
    parent, dot, name = path.source.rpartition(".")
    if not dot or not name or parent.endswith(".") or "]" in name or "*" in name:
        return []
    parents = compile_path(parent or "$").find_nodes(document.root, processing.work)
    return [Node(None, node.value, name) for node in parents if isinstance(node.value, dict)]
