"""OpenSearch's `filter_path`, and the field patterns of `_source`, which follow the same rules.

A pattern is a path of names parted by dots; `*` stands for any part of a name, `**` for any number of names, a
leading `-` leaves out what the rest matches. Arrays are looked through. A pattern that ends at an object takes all
of it.
"""

import re
from collections.abc import Iterable
from typing import Any

_DOT = re.compile(r"(?<!\\)\.")
_MISSING = object()

Path = tuple[str, ...]


def filter_path(body: Any, patterns: Iterable[str]) -> Any:
    """The parts of a JSON value that the patterns name; `{}` if there is none."""
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
    found: dict[str, Any] = {}
    for name, item in value.items():
        deeper = _step(paths, name)
        part = item if () in deeper else _include(item, deeper)
        if part is not _MISSING:
            found[name] = part
    return found or _MISSING


def _exclude(value: Any, paths: frozenset[Path]) -> Any:
    if isinstance(value, list):
        return [_exclude(item, paths) for item in value]
    if not isinstance(value, dict):
        return value
    steps = ((name, item, _step(paths, name)) for name, item in value.items())
    return {name: _exclude(item, deeper) for name, item, deeper in steps if () not in deeper}


def _step(paths: Iterable[Path], name: str) -> frozenset[Path]:
    """What is left of each path below the key `name`; `()` where a path ends at it."""
    left: set[Path] = set()
    for path in paths:
        while path and path[0] == "**":  # no name, or this one and more
            left.add(path)
            path = path[1:]
            if not path:
                left.add(())
        if path and _matches(path[0], name):
            left.add(path[1:])
    return frozenset(left)


def _matches(pattern: str, name: str) -> bool:
    """Whether the name is of the pattern, `*` being any text; in linear time, since callers write the pattern."""
    first, *rest = pattern.split("*")
    if not rest:
        return pattern == name
    last = rest.pop()
    if not name.startswith(first) or not name.endswith(last) or len(name) < len(first) + len(last):
        return False
    start, end = len(first), len(name) - len(last)
    for part in rest:
        found = name.find(part, start, end)
        if found < 0:
            return False
        start = found + len(part)
    return True
