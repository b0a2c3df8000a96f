"""Turn streaming on or off in a body template, once for all requests, where that gives what changing each body would.

A rendered body has to be parsed for that, prompt and all. Where the values of a request stand only within strings, or
are whole members of the body, what is changed around them is the same for each.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.rendering.filled_template import MAX_KEPT, FilledTemplates
from opensearch_ml_stream.connectors.rendering.template import Placeholder, Template
from opensearch_ml_stream.connectors.stream_spec import Enable
from opensearch_ml_stream.connectors.syntax import json_members
from opensearch_ml_stream.connectors.syntax.jsontext import JsonText

_MARK = "\ue000"  # of private use; a template that has it is left alone


@dataclass(frozen=True, slots=True)
class StreamedBody:
    """A template with streaming turned on, and the names of the parameters that are whole members of the body."""

    template: Template
    members: tuple[str, ...]

    def fits(self, request: Mapping[str, str]) -> bool:
        """Whether the request gives JSON for the members: a text there may hold what a body may not."""
        return all(isinstance(request[name], JsonText) for name in self.members)


class StreamedBodies(dict[frozenset[str], StreamedBody | None]):
    """Filled templates with streaming turned on, by the names of the parameters that a request gives."""

    __slots__ = ("_enable", "_templates")

    def __init__(self, templates: FilledTemplates, enable: Enable) -> None:
        super().__init__()
        self._templates = templates
        self._enable = enable

    def __missing__(self, given: frozenset[str]) -> StreamedBody | None:
        if len(self) >= MAX_KEPT:
            return None
        self[given] = body = streamed_body(self._templates[given], self._enable, given)
        return body


def change_body(enable: Enable, body: str) -> str:
    """Return a rendered body with streaming turned on; an error of `json_members` if it is not one JSON object."""
    for name, values in enable.inner_body.items():
        body = json_members.set_inner_members(body, name, values)
    return json_members.set_members(body, enable.body, enable.drop)


def find_members(template: Template) -> Mapping[str, str] | None:
    """Return the members of the body that a template makes, as JSON with marks for its placeholders.

    None if it is no object, whatever the placeholders are.
    """
    marks = [one.member + _mark(index, one) for index, one in enumerate(template.placeholders)]
    try:
        return json_members.split_unique_members(_marked(template, marks))
    except (ValueError, InvalidRequest, RecursionError):
        return None


def streamed_body(template: Template, enable: Enable, given: frozenset[str]) -> StreamedBody | None:
    """Turn streaming on in a template, for requests that give these parameters; None if each body must be changed.

    Each placeholder is marked and must be found again: not in a name, and as a whole member unless it is in a string.
    """
    placeholders = template.placeholders
    if _MARK in "".join(template.literals) or not all(_can_be_marked(one, given) for one in placeholders):
        return None
    marks = [_mark(index, one) for index, one in enumerate(placeholders)]
    try:
        body = change_body(enable, _marked(template, marks))
        json.loads(body, object_pairs_hook=_refuse_marked_names)
        values = set(json_members.split_unique_members(body).values())
    except (ValueError, InvalidRequest, RecursionError):
        return None
    literals = _split(body, marks)
    members = {mark: one.name for one, mark in zip(placeholders, marks, strict=True) if not one.quoted}
    if literals is None or not members.keys() <= values:
        return None
    return StreamedBody(Template(literals, placeholders), tuple(members.values()))


def _can_be_marked(placeholder: Placeholder, given: frozenset[str]) -> bool:
    return not placeholder.or_null if placeholder.quoted else placeholder.name in given


def _mark(index: int, placeholder: Placeholder) -> str:
    mark = f"{_MARK}{index}{_MARK}"
    return mark if placeholder.quoted else f'"{mark}"'


def _marked(template: Template, marks: list[str]) -> str:
    return "".join(chain(*zip(template.literals, [*marks, ""], strict=True)))


def _split(body: str, marks: list[str]) -> tuple[str, ...] | None:
    """Return what stands between the marks, None unless each is there, once and in its turn."""
    literals: list[str] = []
    for mark in marks:
        literal, found, body = body.partition(mark)
        if not found:
            return None
        literals.append(literal)
    literals.append(body)
    return None if _MARK in "".join(literals) else tuple(literals)


def _refuse_marked_names(pairs: list[tuple[str, Any]]) -> None:
    """Raise ValueError for a name that holds a value of the request: another may have the same then."""
    if any(_MARK in name for name, _ in pairs):
        raise ValueError
