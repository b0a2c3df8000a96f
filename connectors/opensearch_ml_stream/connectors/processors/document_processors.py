"""Processors that work on a JSON document at JSONPaths: `jsonpath_filter`, `remove_jsonpath`, `set_field`.

A string counts as the document that it holds. A processor that does not fit a value leaves it as it is.
"""

import json
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.processors.processing import (
    Config,
    Document,
    Processing,
    Processor,
    default_value,
    required_string,
)
from opensearch_ml_stream.connectors.syntax.jsonpath import MISSING, JSONPath, Node, compile_path


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


def jsonpath_filter(config: Config, config_path: str) -> Processor:
    """Compile `jsonpath_filter`, with `path` and `default`."""
    path = compile_path(required_string(config, "path", config_path))
    default = default_value(config)

    def read(value: Any, processing: Processing) -> Any:
        document = processing.parse(value)
        result = MISSING if document is MISSING else path.read(document, processing.work)
        processing.give_away()
        return default(value, processing) if result is MISSING else result

    return read


def remove_jsonpath(config: Config, config_path: str) -> Processor:
    """Compile a processor with `paths`, as ML Commons 3.5 and later has it, or `path`."""
    paths = config.get("paths", [config["path"]] if "path" in config else None)
    if not isinstance(paths, list) or not paths or not all(isinstance(path, str) and path.strip() for path in paths):
        raise InvalidRequest(f"{config_path}.paths must be an array of JSONPaths")
    compiled = [compile_path(path) for path in paths]

    def strip(value: Any, processing: Processing) -> Any:
        document = processing.document(value)
        if document is None:
            return value
        for path in compiled:
            remove(document, path, processing)
        return processing.keep(document)

    return strip


def set_field(config: Config, config_path: str) -> Processor:
    """Compile `set_field`, with `path` and either `value` or `source_path` (and then `default`)."""
    path = compile_path(required_string(config, "path", config_path))
    if ("value" in config) == ("source_path" in config):
        raise InvalidRequest(f"{config_path} needs either value or source_path")
    if "default" in config and "source_path" not in config:
        raise InvalidRequest(f"{config_path}.default can only be used with source_path")
    source = compile_path(required_string(config, "source_path", config_path)) if "source_path" in config else None

    def set_value_of_source(value: Any, processing: Processing) -> Any:
        document = processing.document(value)
        if document is None:
            return value
        new = config.get("value") if source is None else source.read(document.root, processing.work)
        if new is MISSING and "default" in config:
            new = config["default"]
        if new is MISSING or not set_value(document, path, new, processing):
            return value
        return processing.keep(document)

    return set_value_of_source
