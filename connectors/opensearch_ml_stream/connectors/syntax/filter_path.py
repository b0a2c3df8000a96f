"""OpenSearch's `filter_path`: keep or leave out the fields of a JSON value that patterns match, as `_source` does too.

A pattern is a path of names separated by dots; `*` matches any part of a name, `**` any number of names, and a leading
`-` leaves out what the rest matches. A pattern applies to each element of an array, and one that ends at an object
matches all of it. https://docs.opensearch.org/latest/api-reference/common-parameters/#filtered-responses.
"""

import re
from collections.abc import Iterable
from typing import Any

_DOT = re.compile(r"(?<!\\)\.")
_MISSING = object()

Path = tuple[str, ...]


def filter_path(body: Any, patterns: Iterable[str]) -> Any:
    """Return the parts of a JSON value that the patterns select, `{}` if they select nothing."""
    patterns = [pattern.strip() for pattern in patterns if pattern.strip()]
    excluded = frozenset(_path(pattern[1:]) for pattern in patterns if pattern.startswith("-"))
    included = frozenset(_path(pattern) for pattern in patterns if not pattern.startswith("-"))
    if excluded:
        body = _exclude(body, excluded)
    if included:
        body = _include(body, included)
        return {} if body is _MISSING else body
    return body


def _path(pattern: str) -> Path:
    return tuple(name.replace("\\.", ".") for name in _DOT.split(pattern))


def _include(value: Any, paths: frozenset[Path]) -> Any:
    if isinstance(value, list):
        kept = [part for item in value if (part := _include(item, paths)) is not _MISSING]
        return kept or _MISSING
    if not isinstance(value, dict):
        return _MISSING
    fields: dict[str, Any] = {}
    for name, item in value.items():
        paths_below = _descend(paths, name)
        part = item if () in paths_below else _include(item, paths_below)
        if part is not _MISSING:
            fields[name] = part
    return fields or _MISSING


def _exclude(value: Any, paths: frozenset[Path]) -> Any:
    if isinstance(value, list):
        return [_exclude(item, paths) for item in value]
    if not isinstance(value, dict):
        return value
    fields = ((name, item, _descend(paths, name)) for name, item in value.items())
    return {name: _exclude(item, paths_below) for name, item, paths_below in fields if () not in paths_below}


def _descend(paths: Iterable[Path], name: str) -> frozenset[Path]:
    """Return the rests of those paths that match the key `name`, `()` for a path that ends at it."""
    rests: set[Path] = set()
    for path in paths:
        while path and path[0] == "**":  # matches no name, or this one and further ones
            rests.add(path)
            path = path[1:]
            if not path:
                rests.add(())
        if path and _matches(path[0], name):
            rests.add(path[1:])
    return frozenset(rests)


def _matches(pattern: str, name: str) -> bool:
    """Return whether the pattern matches the whole name. Linear time, since callers write the pattern."""
    first, *rest = pattern.split("*")
    if not rest:
        return pattern == name
    last = rest.pop()
    if not name.startswith(first) or not name.endswith(last) or len(name) < len(first) + len(last):
        return False
    start, end = len(first), len(name) - len(last)
    for part in rest:
        at = name.find(part, start, end)
        if at < 0:
            return False
        start = at + len(part)
    return True
