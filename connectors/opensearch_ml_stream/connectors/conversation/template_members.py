"""What a connector's template adds to the body of a conversation, member by member.

A template is read once per connector version into a tree of JSON: it is marked and parsed, and its placeholders are
followed into the connector's parameters. That takes time linear in what the template and those parameters hold, which
is bounded, since parameters may hold one another. Each value in the tree that is no object is one of these:

    literal   holds text or a number of the template's own: it stays, whatever a conversation says
    filled    holds what the connector's parameters or a default give: a conversation may say something else
    open      needs a parameter of the request: a conversation says it, or nobody

At a dialect's `turns` the template's own turns, literal or filled, come before those of the conversation, and a
placeholder is the place where the conversation stands.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final

from opensearch_ml_stream.connectors.conversation.dialect import Dialect
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


NOTHING: Final = object()
"""In place of a value that is not there; None is JSON's null."""

STRUCTURE = ("role", "type")
"""Members that say what a text is, and are none."""

_BETWEEN_TEXTS = "\n\n"


class CannotBeTold(InvalidRequest):
    """The words of a connector's template cannot be told from the place that it has for a conversation."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"The connector's request_body has words of its own at [{path}], which cannot be told from the place of "
            "the conversation there"
        )


def join_turns(own: Any, said: Any, path: str) -> Any:
    """Return what the template says and then what the conversation says; CannotBeTold if their forms do not fit.

    Texts are joined by a blank line, a text and a list of parts as parts, lists one after the other, and objects
    member by member.
    """
    if said is NOTHING or own is NOTHING or own is None:
        return own if said is NOTHING else said
    if isinstance(own, str) and isinstance(said, str):
        return own + _BETWEEN_TEXTS + said if own and said else own or said
    if isinstance(own, list) and isinstance(said, list):
        return [*own, *said]
    if isinstance(own, str) and isinstance(said, list):
        return [_as_part(own, said, path), *said]
    if isinstance(own, list) and isinstance(said, str):
        return [*own, _as_part(said, own, path)]
    if isinstance(own, Mapping) and isinstance(said, Mapping):
        joined = {
            name: value if name in STRUCTURE else join_turns(value, said.get(name, NOTHING), path)
            for name, value in own.items()
        }
        return {**joined, **{name: value for name, value in said.items() if name not in own}}
    raise CannotBeTold(path)


def _as_part(text: str, parts: list[Any], path: str) -> Any:
    """Return a text as the parts of a list are written."""
    like = parts[0] if parts else ""
    if isinstance(like, str):
        return text
    if isinstance(like, Mapping) and isinstance(like.get("text"), str) and "role" not in like:
        return {"type": "text", "text": text} if "type" in like else {"text": text}
    raise CannotBeTold(path)


class NotGiven(InvalidRequest):
    """A template needs the parameter `name`, and is given none."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"The connector's request_body needs the parameter [{name}], which no conversation gives: give it in the "
            f"connector's parameters, or a default in the template, as in ${{parameters.{name}:-null}}"
        )
        self.name = name


@dataclass(frozen=True, slots=True)
class _Merge:
    """The body of a template and what a dialect writes, as one merge where `fits` says so: of nearly all.

    What is written replaces `defaults`, and `literals` replace it. The template has to be walked where it is not
    mergeable, where any of `needed` is not written, or any of `replacing` is: what stands for other members.
    """

    dialect: Dialect
    defaults: Mapping[str, Any]
    literals: Mapping[str, Any]
    needed: frozenset[str]
    replacing: frozenset[str]
    is_mergeable: bool

    def fits(self, written: Mapping[str, Any]) -> bool:
        """Whether the body of what is written is a merge."""
        names = written.keys()
        return self.is_mergeable and self.needed <= names and self.replacing.isdisjoint(names)


@dataclass(frozen=True, slots=True)
class TemplateMembers:
    """The members of a body template."""

    root: Members
    _merges: dict[int, _Merge] = field(default_factory=dict)  # by the `id` of the dialect that each holds

    @classmethod
    def read(cls, template: Template, connector: ConnectorParameters) -> "TemplateMembers | None":
        """Read a template; None if it is no JSON object, or its members cannot be known without a request."""
        root = TemplateTree(connector).read(template)
        return cls(root) if isinstance(root, Members) else None

    def body(self, dialect: Dialect, written: Mapping[str, Any]) -> dict[str, Any]:
        """Return the body of what a dialect has written.

        CannotBeTold where the template's words cannot be told from the place of the conversation, NotGiven for a
        parameter that nobody gives.
        """
        merge = self._merges.get(id(dialect)) or self._new_merge(dialect)
        if merge.fits(written):
            return {**merge.defaults, **written, **merge.literals}
        written = {**self._defaults(dialect), **written}
        left_out: set[str] = set()
        for path, others in dialect.instead_of.items():
            if not _has(written, path):
                continue
            for other in others:
                node = self._at(other)
                if node is not None and path in dialect.turns and _own_turns(node, other) is not NOTHING:
                    raise CannotBeTold(other)
                if has_literal(node):
                    written = _without(written, path)
                    break
                if not _has(written, other):
                    left_out.add(other)
        return _Body(frozenset(dialect.turns), left_out).of(self.root, written, "")

    def _new_merge(self, dialect: Dialect) -> _Merge:
        own, defaults = self.root.members, self._defaults(dialect)
        needed = {name for name, node in own.items() if isinstance(node, Open) and not node.is_optional}
        replacing = {
            path.partition(".")[0]
            for path, others in dialect.instead_of.items()
            if not all(_is_left_out(self._at(other)) for other in others)
        }
        known = {name: node for name, node in own.items() if isinstance(node, Known) and name not in dialect.turns}
        merge = self._merges[id(dialect)] = _Merge(
            dialect,
            defaults | {name: node.value for name, node in known.items() if not node.is_literal},
            {name: node.value for name, node in known.items() if node.is_literal},
            frozenset(needed.difference(dialect.turns, defaults)),
            frozenset(replacing),
            replacing.isdisjoint(defaults)
            and all(
                _is_place_of_turns(node) if name in dialect.turns else isinstance(node, Known | Open)
                for name, node in own.items()
            ),
        )
        return merge

    def _defaults(self, dialect: Dialect) -> dict[str, Any]:
        """Return the dialect's defaults of the members that the template leaves open or does not have."""
        own = self.root.members
        return {name: value for name, value in dialect.defaults.items() if isinstance(own.get(name), Open | None)}

    def _at(self, path: str) -> Node | None:
        node: Node | None = self.root
        for name in path.split("."):
            node = node.members.get(name) if isinstance(node, Members) else None
        return node


@dataclass(frozen=True, slots=True)
class _Body:
    """One body in the making: the paths of what is said, and of the template's members that are left out."""

    turns: frozenset[str]
    left_out: set[str]

    def of(self, template: Members, written: Mapping[str, Any], prefix: str) -> dict[str, Any]:
        body: dict[str, Any] = {}
        for name, node in template.members.items():
            path = prefix + name
            if path in self.left_out:
                continue
            said = written.get(name, NOTHING)
            value = join_turns(_own_turns(node, path), said, path) if path in self.turns else self._at(node, said, path)
            if value is not NOTHING:
                body[name] = value
        return body | {name: said for name, said in written.items() if name not in template.members}

    def _at(self, node: Node, said: Any, path: str) -> Any:
        """Return the value of a member, NOTHING for one that is left out."""
        if isinstance(node, Members):
            if said is not NOTHING and not isinstance(said, Mapping):
                if not has_literal(node):
                    return said
                said = NOTHING
            body = self.of(node, {} if said is NOTHING else said, f"{path}.")
            return body if body or not node.members else NOTHING
        if isinstance(node, Known):
            return node.value if node.is_literal or said is NOTHING else said
        if said is not NOTHING:
            if has_literal(node):
                raise CannotBeTold(path)
            return said
        return NOTHING if _is_left_out(node) else _value(node)


def _is_left_out(node: Node | None) -> bool:
    """Return whether a member of the template is in a body only if a conversation says it."""
    return node is None or (isinstance(node, Open) and node.is_optional)


def _value(node: Node) -> Any:
    """Return a value that no conversation changes. NotGiven if it has a placeholder that nothing fills."""
    if isinstance(node, Known):
        return node.value
    if isinstance(node, Members):
        return {name: _value(inner) for name, inner in node.members.items()}
    if isinstance(node, Items):
        return [_value(inner) for inner in node.items]
    if isinstance(node, Open) and node.is_optional:
        return None
    raise NotGiven(node.name if isinstance(node, Open) else node.names[0])


def _own_turns(node: Node, path: str) -> Any:
    """Return what a template itself says at a place of turns, NOTHING if it only has a place for them there.

    CannotBeTold where its words stand around a placeholder in one text, or turns of its own come after one.
    """
    if isinstance(node, Known):
        return node.value
    if isinstance(node, Open):
        return NOTHING
    if isinstance(node, Mixed):
        raise CannotBeTold(path)
    if isinstance(node, Items):
        return _own_items(node, path)
    own = {name: value for name, one in node.members.items() if (value := _own_turns(one, path)) is not NOTHING}
    return NOTHING if len(own) < len(node.members) and all(name in STRUCTURE for name in own) else own


def _is_place_of_turns(node: Node) -> bool:
    try:
        return _own_turns(node, "") is NOTHING
    except CannotBeTold:
        return False


def _own_items(node: Items, path: str) -> Any:
    own: list[Any] = []
    has_place = False
    for item in node.items:
        if _is_place(item):
            has_place = True
        elif has_place or not isinstance(item, Known):
            raise CannotBeTold(path)
        else:
            own.append(item.value)
    return own or NOTHING


def _is_place(node: Node) -> bool:
    """Whether a turn, or a part of one, has no text but one placeholder."""
    if isinstance(node, Items):
        return len(node.items) == 1 and _is_place(node.items[0])
    if isinstance(node, Members):
        open_members = [one for name, one in node.members.items() if name not in STRUCTURE]
        return len(open_members) == 1 and _is_place(open_members[0])
    return isinstance(node, Open)


def _has(written: Any, path: str) -> bool:
    if "." not in path:
        return path in written
    for name in path.split("."):
        if not isinstance(written, Mapping) or name not in written:
            return False
        written = written[name]
    return True


def _without(written: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    """Return the members without the one at a path, which they have."""
    name, _, rest = path.partition(".")
    left = {key: value for key, value in written.items() if key != name}
    return left | {name: _without(written[name], rest)} if rest else left
