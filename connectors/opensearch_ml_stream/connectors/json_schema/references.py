"""References within a schema: JSON pointers, anchors, and the identifiers of schemas in it. Nothing is ever fetched.

An `$id` counts as it is written: a relative one is not resolved against another.
"""

from typing import Any
from urllib.parse import unquote

_NO_SCHEMAS = ("const", "enum", "default", "examples")  # keywords whose values only look like schemas at times


class UnknownReference(Exception):
    """The schema has nothing of that name; the message is the reference."""


class References:
    """What the references of one schema can name."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._resources: dict[str, Any] = {}
        self._anchors: dict[tuple[int, str], Any] = {}
        self._home: dict[int, Any] = {}  # the id() of each object in the schema -> the resource that it belongs to
        self._read(root)

    def resolve(self, reference: str, schema: Any) -> Any:
        """Return the part of the schema that a `$ref` in `schema` names. UnknownReference if there is none."""
        resource, _, fragment = reference.partition("#")
        home = self._resources.get(resource) if resource else self._home.get(id(schema), self._root)
        fragment = unquote(fragment)
        if home is None:
            raise UnknownReference(reference)
        if not fragment:
            return home
        if not fragment.startswith("/"):
            if (id(home), fragment) not in self._anchors:
                raise UnknownReference(reference)
            return self._anchors[id(home), fragment]
        return _follow(home, fragment, reference)

    def _read(self, root: Any) -> None:
        pending = [(root, root)]
        while pending:
            value, home = pending.pop()
            if isinstance(value, list):
                pending += [(element, home) for element in value]
            if not isinstance(value, dict):
                continue
            if isinstance(name := value.get("$id"), str):
                home = value
                self._resources[name.rstrip("#")] = value
            self._home[id(value)] = home
            for keyword in ("$anchor", "$dynamicAnchor"):
                if isinstance(name := value.get(keyword), str):
                    self._anchors[id(home), name] = value
            pending += [(part, home) for keyword, part in value.items() if keyword not in _NO_SCHEMAS]


def _follow(value: Any, pointer: str, reference: str) -> Any:
    """Return what a JSON pointer (RFC 6901) names."""
    for token in pointer[1:].split("/"):
        key = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdecimal() and len(key) < 9 and int(key) < len(value):
            value = value[int(key)]
        else:
            raise UnknownReference(reference)
    return value
