"""OpenSearch's `filter_path`: keep or leave out the fields of a JSON value that patterns match, as `_source` does too.

A pattern is a path of names separated by dots; `*` matches any part of a name, `**` any number of names, and a leading
`-` leaves out what the rest matches. A pattern applies to each element of an array, and one that ends at an object
matches all of it. https://docs.opensearch.org/latest/api-reference/common-parameters/#filtered-responses.

All patterns run as one automaton over the value, each key once, without recursion.
"""

import re
from collections.abc import Iterable
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.syntax.work_limit import WorkLimit

MAX_PATTERN_CHARS = 10_000  # of all patterns together
MAX_STARS = 20  # in one name; matching takes time for each
_FREE_TESTS = 8  # of a key by names of patterns; more are counted as work
_DOT = re.compile(r"(?<!\\)\.")
_MATCHED = -1
_CONTAINERS = (dict, list)

States = tuple[int, ...]
"""Where the patterns may go on: indexes of names, or `_MATCHED` for a pattern that ends here."""

_Copy = tuple[Any, Any, States]
"""A value, the container to copy its parts into, and the states before it."""


def filter_path(body: Any, patterns: Iterable[str]) -> Any:
    """Return the parts of a JSON value that the patterns select, `{}` if they select nothing.

    InvalidRequest for patterns that are too long, or so many that matching them takes too much work.
    """
    return FieldFilter(patterns).apply(body)


class FieldFilter:
    """Patterns for several JSON values, with one limit of work for all of them, which other filters may share."""

    def __init__(self, patterns: Iterable[str], work: WorkLimit | None = None) -> None:
        checked = check_patterns(patterns)
        work = work or pattern_work()
        excluded = [pattern[1:] for pattern in checked if pattern.startswith("-")]
        included = [pattern for pattern in checked if not pattern.startswith("-")]
        self._excluded = _Automaton(excluded, work) if excluded else None
        self._included = _Automaton(included, work) if included else None

    def apply(self, body: Any) -> Any:
        """Return the parts of a JSON value that the patterns select, `{}` if they select nothing."""
        if self._excluded is not None:
            body = _exclude(body, self._excluded)
        return body if self._included is None else _include(body, self._included)


def pattern_work() -> WorkLimit:
    """Return the work that one response's patterns may take."""
    return WorkLimit("Matching the patterns of filter_path or _source")


def check_patterns(patterns: Iterable[str]) -> list[str]:
    """Return the patterns that are not blank, stripped. InvalidRequest for more text or stars than is allowed."""
    patterns = [pattern.strip() for pattern in patterns if pattern.strip()]
    characters = sum(map(len, patterns))
    if characters > MAX_PATTERN_CHARS:
        raise InvalidRequest(
            f"The patterns of filter_path or _source may have {MAX_PATTERN_CHARS} characters; these have {characters}"
        )
    for name in (name for pattern in patterns for name in pattern.split(".")):
        if name.count("*") > MAX_STARS:
            raise InvalidRequest(
                f"A name in filter_path or _source may have {MAX_STARS} stars; one has {name.count('*')}"
            )
    return patterns


class _Automaton:
    """Patterns as states. The steps by a key are kept, since most values repeat their keys."""

    def __init__(self, patterns: Iterable[str], work: WorkLimit) -> None:
        self._names: list[list[str] | None] = []  # what is between the stars of a name, None for `**`
        self._is_last: list[bool] = []
        self._steps: dict[tuple[States, str], States] = {}
        self._work = work
        starts: set[int] = set()
        for pattern in set(patterns):
            start = len(self._names)
            self._add(pattern)
            starts.update(self._reached(start))
        self.start: States = tuple(sorted(starts))

    def _add(self, pattern: str) -> None:
        names = [name.replace("\\.", ".") for name in _DOT.split(pattern)]
        # `**.**` means the same as `**`.
        names = [name for name, previous in zip(names, ["", *names], strict=False) if (name, previous) != ("**", "**")]
        self._names += [None if name == "**" else name.split("*") for name in names]
        self._is_last += [False] * (len(names) - 1) + [True]

    def _reached(self, state: int) -> States:
        """Return the state, and the one behind it if it is `**`, which matches no name too."""
        return (state, state + 1) if self._names[state] is None and not self._is_last[state] else (state,)

    def step(self, states: States, key: str) -> States:
        """Return the states behind a key of an object."""
        known = self._steps.get((states, key))
        if known is not None:
            return known
        if len(states) > _FREE_TESTS:
            self._work.spend(3 * (len(states) - _FREE_TESTS))
        following: set[int] = set()
        for state in states:
            name = self._names[state]
            if name is None:
                following.update(self._reached(state))
            if name is None or _matches(name, key):
                if self._is_last[state]:
                    following.add(_MATCHED)
                elif name is not None:
                    following.update(self._reached(state + 1))
        self._steps[states, key] = result = tuple(sorted(following))
        return result


def _include(body: Any, automaton: _Automaton) -> Any:
    kept: dict[str, Any] | list[Any] = [] if isinstance(body, list) else {}
    copied: list[tuple[Any, list[str]]] = []  # containers, each with the keys whose values may turn out empty
    pending: list[_Copy] = [(body, kept, automaton.start)]
    while pending:
        source, target, states = pending.pop()
        if isinstance(source, list):
            copied.append((target, []))
            pending += _include_elements(source, target, states)
        elif isinstance(source, dict):
            doubtful, inner = _include_fields(source, target, states, automaton)
            copied.append((target, doubtful))
            pending += inner
    for target, doubtful in reversed(copied):  # the inner ones first
        if isinstance(target, list):
            target[:] = [item for item in target if item]
            continue
        for key in doubtful:
            if not target[key]:
                del target[key]
    return kept or {}


def _include_elements(source: list[Any], target: list[Any], states: States) -> list[_Copy]:
    inner = [item for item in source if item and isinstance(item, _CONTAINERS)]
    target += [type(item)() for item in inner]
    return [(item, copy, states) for item, copy in zip(inner, target, strict=True)]


def _include_fields(
    source: dict[str, Any], target: dict[str, Any], states: States, automaton: _Automaton
) -> tuple[list[str], list[_Copy]]:
    inner: dict[str, _Copy] = {}
    for key, item in source.items():
        below = automaton.step(states, key)
        if _MATCHED in below:
            target[key] = item
        elif below and item and isinstance(item, _CONTAINERS):
            target[key] = type(item)()
            inner[key] = item, target[key], below
    return list(inner), list(inner.values())


def _exclude(body: Any, automaton: _Automaton) -> Any:
    whole: list[Any] = [body]
    pending: list[tuple[Any, Any, States]] = [(whole, 0, automaton.start)]
    while pending:
        container, key, states = pending.pop()
        source = container[key]
        if isinstance(source, list):
            container[key] = kept = list(source)
            pending.extend(
                (kept, index, states) for index, item in enumerate(kept) if item and isinstance(item, _CONTAINERS)
            )
        elif isinstance(source, dict):
            container[key] = fields = {}
            for name, item in source.items():
                below = automaton.step(states, name)
                if _MATCHED not in below:
                    fields[name] = item
                    if below and item and isinstance(item, _CONTAINERS):
                        pending.append((fields, name, below))
    return whole[0]


def _matches(parts: list[str], name: str) -> bool:
    """Return whether the parts, with anything between them, make the whole name."""
    first, last = parts[0], parts[-1]
    if len(parts) == 1:
        return first == name
    if not name.startswith(first) or not name.endswith(last) or len(name) < len(first) + len(last):
        return False
    start, end = len(first), len(name) - len(last)
    for part in parts[1:-1]:
        at = name.find(part, start, end)
        if at < 0:
            return False
        start = at + len(part)
    return True
