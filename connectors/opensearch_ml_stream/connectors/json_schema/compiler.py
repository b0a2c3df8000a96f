"""Compile a JSON Schema, and validate values with it. Nothing here is recursive in the schema's own nesting."""

from collections.abc import Callable, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any
from urllib.parse import unquote

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.json_schema.applicators import (
    Subschema,
    add_applicators,
    add_unevaluated_items,
    add_unevaluated_properties,
)
from opensearch_ml_stream.connectors.json_schema.assertions import ASSERTIONS, BadKeyword, compile_pattern
from opensearch_ml_stream.connectors.json_schema.evaluation import Evaluation, Path, TooComplex, Violation, to_json_path
from opensearch_ml_stream.connectors.syntax.regex import PatternLimit

_NO_SCHEMAS = ("const", "enum", "default", "examples")  # keywords whose values only look like schemas at times


class UnknownReference(Exception):
    """The schema has nothing of that name; the message is the reference."""


class References:
    """What the references of one schema can name: JSON pointers, anchors, identifiers. Nothing is ever fetched.

    An `$id` counts as it is written: a relative one is not resolved against another.
    """

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


MAX_SUBSCHEMAS = 5_000

# Keywords whose value is `false` at times; a value that breaks it is reported by the keyword's name.
_REFUSING = ("additionalProperties", "items", "unevaluatedProperties", "unevaluatedItems", "propertyNames")


class BadSchema(Exception):
    """The value is not a JSON Schema; the message says what is wrong, and where."""


class JSONSchema:
    """A compiled schema."""

    def __init__(self, root: Subschema) -> None:
        self._root = root

    @classmethod
    def compile(cls, schema: Any) -> "JSONSchema":
        """Compile a parsed schema. BadSchema if it is none, UnknownReference for a `$ref` to what is not in it."""
        return cls(_Compiler(schema).compile())

    def violations(self, value: Any, run: Evaluation | None = None) -> list[Violation]:
        """Return the first rules that a value breaks, none if it is good. TooComplex if it cannot be decided.

        Several values may be validated within the budget of one by the same `run`.
        """
        run = run or Evaluation()
        self._root.check(run, value, None)
        return run.violations


class _Compiler:
    """The subschemas compiled so far, and those that still have to be."""

    def __init__(self, schema: Any) -> None:
        self._schema = schema
        self._references = References(schema)
        self._nodes: dict[int, Subschema] = {}  # by the id() of the schema, which `_schema` keeps alive
        self._pending: list[tuple[Subschema, dict[str, Any], Path]] = []
        self._patterns = PatternLimit("the schema")
        self._in_place: dict[int, list[int]] = {}  # id() of a subschema -> those that it applies to the same value

    def compile(self) -> Subschema:
        root = self._node(self._schema, None)
        while self._pending:
            node, schema, path = self._pending.pop()
            self._fill(node, schema, path)
        try:
            TopologicalSorter(self._in_place).prepare()
        except CycleError:
            raise BadSchema("a $ref leads back to itself without going into a member or an element") from None
        return root

    def _node(self, schema: Any, path: Path) -> Subschema:
        """Return the subschema of a schema, to be filled later if it is new."""
        if isinstance(schema, bool):
            node = Subschema()
            if not schema:
                keyword = path[1] if path is not None and path[1] in _REFUSING else "false"
                node.assertions.append((str(keyword), None, lambda run, value: False))
            return node
        if not isinstance(schema, dict):
            raise BadSchema(f"{to_json_path(path)} must be an object, true or false")
        node = self._nodes.get(id(schema)) or Subschema()
        if id(schema) not in self._nodes:
            self._nodes[id(schema)] = node
            self._pending.append((node, schema, path))
            if len(self._nodes) > MAX_SUBSCHEMAS:
                raise BadSchema(f"it has more than {MAX_SUBSCHEMAS} subschemas")
        return node

    def _fill(self, node: Subschema, schema: dict[str, Any], path: Path) -> None:
        keyword = ""

        def compile(part: Any, keys: tuple[str | int, ...]) -> Subschema:
            below = path
            for key in keys:
                below = (below, key)
            return self._node(part, below)

        try:
            for keyword, new_test in ASSERTIONS.items():
                if keyword in schema:
                    node.assertions.append((keyword, schema[keyword], new_test(schema[keyword])))
            keyword = ""
            in_place = self._referred(node, schema, path)
            in_place += add_applicators(node, schema, compile)
            self._spend_on_patterns(schema)
        except (BadKeyword, TooComplex) as error:
            raise BadSchema(f"{to_json_path((path, keyword) if keyword else path)}: {error}") from None
        if "unevaluatedProperties" in schema:
            add_unevaluated_properties(node, compile(schema["unevaluatedProperties"], ("unevaluatedProperties",)))
        if "unevaluatedItems" in schema:
            add_unevaluated_items(node, compile(schema["unevaluatedItems"], ("unevaluatedItems",)))
        self._in_place[id(node)] = [id(part) for part in in_place]

    def _spend_on_patterns(self, schema: dict[str, Any]) -> None:
        """Pay for the patterns of a subschema, which have just been compiled."""
        found = [schema["pattern"]] if "pattern" in schema else []
        for pattern in (*found, *schema.get("patternProperties", ())):
            try:
                self._patterns.spend(compile_pattern(pattern))
            except InvalidRequest as error:
                raise BadKeyword(error.reason) from None

    def _referred(self, node: Subschema, schema: dict[str, Any], path: Path) -> list[Subschema]:
        """Add the references. `$dynamicRef` is followed as `$ref` is: a schema of one document has no other scopes."""
        targets: list[Subschema] = []
        for keyword in ("$ref", "$dynamicRef"):
            if keyword in schema:
                reference = schema[keyword]
                if not isinstance(reference, str):
                    raise BadKeyword(f"{keyword} must be a string")
                target = self._node(self._references.resolve(reference, schema), (path, keyword))
                node.checks.append(target.check)
                node.applied.append(_always(target))
                targets.append(target)
        return targets


def _always(target: Subschema) -> Callable[[Evaluation, Any], Sequence[Subschema]]:
    return lambda run, value: (target,)
