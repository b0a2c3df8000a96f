"""A body template as a tree of JSON, with its placeholders followed into the connector's parameters.

The template is marked, parsed, and taken apart, in time linear in what it and the parameters in it hold; what they hold
is bounded, since parameters may hold one another.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.rendering.template import (
    MAX_NESTED_PARAMETERS,
    MAX_RENDERED_CHARS,
    TO_STRING,
    ConnectorParameters,
    Placeholder,
    Template,
)
from opensearch_ml_stream.connectors.syntax import jsontext

MAX_FOLLOWED = 10_000  # placeholders of a template, those in the connector's parameters counted each time

_MARK = "\ue000"  # of private use; a template that has it is left alone
_MARKED = re.compile(f"{_MARK}([0-9]+){_MARK}")
_MAX_DEPTH = 100  # of the tree: each level is two stack frames when a body is made of it


@dataclass(frozen=True, slots=True)
class Known:
    """A value in which no placeholder is left; whether any of it is written in the template itself."""

    value: Any
    is_literal: bool


@dataclass(frozen=True, slots=True)
class Open:
    """A placeholder that only a request fills; without one it is left out, or null, if it is optional."""

    name: str
    is_optional: bool = False


@dataclass(frozen=True, slots=True)
class Mixed:
    """A text with placeholders `names` that only a request fills, and more beside the first of them."""

    names: tuple[str, ...]
    is_literal: bool


@dataclass(frozen=True, slots=True)
class Items:
    """An array in which a placeholder is left."""

    items: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Members:
    """An object; in an array, one in which a placeholder is left."""

    members: Mapping[str, "Node"]


Node = Known | Open | Mixed | Items | Members
_Part = str | Open


def has_literal(node: Node | None) -> bool:
    """Return whether any of a value is written in the template itself."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Known | Mixed):
            if one.is_literal:
                return True
        elif isinstance(one, Items):
            waiting += one.items
        elif isinstance(one, Members):
            waiting += one.members.values()
    return False


class _Unknown(Exception):
    """What a template holds cannot be known without a request, or is beyond the bounds."""


class TemplateTree:
    """Reads one template."""

    def __init__(self, connector: ConnectorParameters) -> None:
        self._connector = connector
        self._followed = 0
        self._chars = 0

    def read(self, template: Template) -> Node | None:
        """Return the tree of a JSON template; None if it cannot be known without a request."""
        try:
            return self._parsed(template, (), 0, is_template=True)
        except (_Unknown, InvalidRequest):
            return None

    def _parsed(self, template: Template, enclosing: tuple[str, ...], depth: int, *, is_template: bool) -> Node:
        if _MARK in "".join(template.literals):
            raise _Unknown
        marks = [self._mark(index, one, enclosing) for index, one in enumerate(template.placeholders)]
        text = "".join(chain(*zip(template.literals, [*marks, ""], strict=True)))
        self._count(text)
        placed = _Placed(self, template.placeholders, enclosing, is_template)
        return placed.node(jsontext.parse(text, "request_body"), depth)

    def _mark(self, index: int, placeholder: Placeholder, enclosing: tuple[str, ...]) -> str:
        """Return what stands for a placeholder in the text that is parsed: a default that is no value, as it is."""
        mark = f"{_MARK}{index}{_MARK}"
        if placeholder.quoted and not placeholder.or_null:
            return mark
        default = placeholder.default
        if placeholder.member or default is None or self._given(placeholder.name, enclosing) is not None:
            return f'{placeholder.member}"{mark}"'
        return f'"{mark}"' if jsontext.is_json(default) else default

    def value_of(self, placeholder: Placeholder, enclosing: tuple[str, ...], depth: int) -> Node:
        """Return the tree of a placeholder that is a value of its own."""
        name = self._given(placeholder.name, enclosing)
        if name is None:
            if placeholder.or_null or placeholder.member or placeholder.default == "null":
                return Open(placeholder.name, is_optional=True)
            if placeholder.default is None:
                return Open(placeholder.name)
            return Known(jsontext.parse(placeholder.default, ""), is_literal=False)
        if placeholder.or_null:
            return _text(list(self.parts_of(placeholder, enclosing)), is_literal=False)
        if (template := self._connector.templates.get(name)) is not None:
            return self._parsed(template.json, self._enter(name, enclosing), depth, is_template=False)
        value = self._connector.values[name]
        self._count(value)
        if not jsontext.is_json(value):
            return Open(name)
        return _Placed(self, (), enclosing, is_literal=False).node(jsontext.parse(value, name), depth)

    def parts_of(
        self, placeholder: Placeholder, enclosing: tuple[str, ...], *, in_json: bool = True
    ) -> Iterator[_Part]:
        """Yield the parts of a text that a placeholder in it gives."""
        self._count("")
        name = self._given(placeholder.name, enclosing)
        if name is None:
            if placeholder.default is None:
                yield Open(placeholder.name)
            else:
                yield jsontext.parse(f'"{placeholder.default}"', "") if in_json else placeholder.default
            return
        self._count(self._connector.values[name])
        template = self._connector.templates.get(name)
        if template is None:
            yield self._connector.values[name]
            return
        within = self._enter(name, enclosing)
        yield template.text.literals[0]
        for inner, literal in zip(template.text.placeholders, template.text.literals[1:], strict=True):
            yield from self.parts_of(inner, within, in_json=False)
            yield literal

    def _given(self, name: str, enclosing: tuple[str, ...]) -> str | None:
        """Return the name of the connector's parameter that fills a placeholder, None if there is none."""
        values = self._connector.values
        if name in values:
            return name
        base = name.removesuffix(TO_STRING)
        return base if enclosing and base in values else None

    def _enter(self, name: str, enclosing: tuple[str, ...]) -> tuple[str, ...]:
        if name in enclosing or len(enclosing) >= MAX_NESTED_PARAMETERS:
            raise _Unknown
        return (*enclosing, name)

    def _count(self, text: str) -> None:
        self._followed += 1
        self._chars += len(text)
        if self._followed > MAX_FOLLOWED or self._chars > MAX_RENDERED_CHARS:
            raise _Unknown


@dataclass(frozen=True, slots=True)
class _Placed:
    """Makes the tree of a parsed template, in which the `placeholders` are marked by their index."""

    tree: TemplateTree
    placeholders: Sequence[Placeholder]
    enclosing: tuple[str, ...]
    is_literal: bool

    def node(self, value: Any, depth: int, *, is_in_array: bool = False) -> Node:
        if depth > _MAX_DEPTH:
            raise _Unknown
        if isinstance(value, str) and self.placeholders and _MARK in value:
            return self._string(value, depth)
        if isinstance(value, dict):
            members: dict[str, Node] = {}
            for name, inner in value.items():
                if self.placeholders and _MARK in name:
                    raise _Unknown
                members[name] = self.node(inner, depth + 1, is_in_array=is_in_array)
            if is_in_array:
                return _known_object(members, self.is_literal) or Members(members)
            return Members(members)
        if isinstance(value, list):
            items: list[Node] = []
            for inner in value:
                items.append(self.node(inner, depth + 1, is_in_array=True))  # noqa: PERF401 (a frame less)
            return _known_array(items, self.is_literal) or Items(tuple(items))
        return Known(value, self.is_literal)

    def _string(self, value: str, depth: int) -> Node:
        pieces = _MARKED.split(value)  # texts and indexes in turn
        if len(pieces) == 3 and not pieces[0] and not pieces[2]:
            placeholder = self.placeholders[int(pieces[1])]
            if not placeholder.quoted or placeholder.or_null:
                return self.tree.value_of(placeholder, self.enclosing, depth)
        parts: list[_Part] = []
        for index, piece in enumerate(pieces):
            if index % 2:
                parts += self.tree.parts_of(self.placeholders[int(piece)], self.enclosing)
            else:
                parts.append(piece)
        return _text(parts, is_literal=self.is_literal and any(pieces[::2]))


def _text(parts: list[_Part], *, is_literal: bool) -> Node:
    left = [part for part in parts if isinstance(part, Open)]
    if not left:
        return Known("".join(part for part in parts if isinstance(part, str)), is_literal)
    if len(left) == 1 and not any(part for part in parts if isinstance(part, str)):
        return left[0]
    return Mixed(tuple(part.name for part in left), is_literal)


def _known_object(members: Mapping[str, Node], is_literal: bool) -> Known | None:
    values = list(members.values())
    known = [one for one in values if isinstance(one, Known)]
    if len(known) < len(values):
        return None
    value = {name: one.value for name, one in zip(members, known, strict=True)}
    return Known(value, any(one.is_literal for one in known) or (is_literal and not known))


def _known_array(items: Sequence[Node], is_literal: bool) -> Known | None:
    known = [one for one in items if isinstance(one, Known)]
    if len(known) < len(items):
        return None
    return Known([one.value for one in known], any(one.is_literal for one in known) or (is_literal and not known))
