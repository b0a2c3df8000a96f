"""What a connector's template has to say in the body of a conversation, member by member.

A template is read once per connector version into a tree. Each value in it that is no object is one of these:

    literal   holds text or a number of the template's own: it stays, whatever a conversation says
    filled    holds what the connector's parameters or a default give: a conversation may say something else
    open      needs a parameter of the request: a conversation says it, or nobody

At a dialect's `turns` the template's own turns, literal or filled, come before those of the conversation, and a
placeholder is the place where the conversation stands.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from opensearch_ml_stream.connectors.conversation.dialect import Dialect
from opensearch_ml_stream.connectors.conversation.joined_turns import NOTHING, STRUCTURE, CannotBeTold, join_turns
from opensearch_ml_stream.connectors.conversation.template_tree import (
    Items,
    Known,
    Members,
    Mixed,
    Node,
    Open,
    TemplateTree,
    has_literal,
)
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.rendering.template import ConnectorParameters, Template


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
