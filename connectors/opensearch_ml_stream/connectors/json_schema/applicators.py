"""Applicators: keywords that apply subschemas, to the same value or to its members and elements.

`unevaluatedProperties` and `unevaluatedItems` come last: they apply to what no other keyword has looked at.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from opensearch_ml_stream.connectors.json_schema.assertions import BadKeyword, Test, count, searcher
from opensearch_ml_stream.connectors.json_schema.evaluation import Evaluation, Path

Check = Callable[[Evaluation, Any, Path], bool]


class Subschema:
    """A compiled subschema.

    `applied` holds, for each keyword that applies others to the same value (`allOf`, `$ref` ...), a function that
    returns those of them which the value keeps; `names` and `indexes` return the members and elements that this
    subschema evaluates itself. They serve `unevaluatedProperties` and `unevaluatedItems`; a subschema that has one of
    these itself (`evaluates_all_names`, `evaluates_all_items`) leaves nothing to that of a subschema around it.
    """

    __slots__ = (
        "applied", "assertions", "checks", "evaluates_all_items", "evaluates_all_names", "indexes", "names",
    )  # fmt: skip

    def __init__(self) -> None:
        self.assertions: list[tuple[str, Any, Test]] = []
        self.checks: list[Check] = []
        self.applied: list[Callable[[Evaluation, Any], Sequence[Subschema]]] = []
        self.evaluates_all_names = self.evaluates_all_items = False
        self.names: Callable[[Evaluation, dict[str, Any]], set[str]] | None = None
        self.indexes: Callable[[Evaluation, list[Any]], set[int]] | None = None

    def check(self, run: Evaluation, value: Any, path: Path) -> bool:
        """Return whether the value keeps the subschema; report each rule that it breaks."""
        run.enter()
        good = True
        for keyword, rule, test in self.assertions:
            if not test(run, value):
                good = False
                run.report(path, keyword, _missing(rule, value) if keyword == "required" else rule)
                if not run.must_go_on:
                    break
        if good or run.must_go_on:
            for check in self.checks:
                if not check(run, value, path):
                    good = False
                    if not run.must_go_on:
                        break
        run.depth -= 1
        return good

    def is_kept(self, run: Evaluation, value: Any) -> bool:
        """Return whether the value keeps the subschema; report nothing."""
        run.quiet += 1
        kept = self.check(run, value, None)
        run.quiet -= 1
        return kept

    def only_type(self) -> Test | None:
        """Return the test of `type` if this subschema has no other rule."""
        alone = len(self.assertions) == 1 and not self.checks and self.assertions[0][0] == "type"
        return self.assertions[0][2] if alone else None


def _missing(names: Sequence[str], value: dict[str, Any]) -> list[str]:
    return [name for name in names if name not in value]


Compile = Callable[[Any, tuple[str | int, ...]], Subschema]
"""Compiles the subschema that stands at a path below the schema whose keywords are compiled."""


def add_applicators(node: Subschema, schema: Mapping[str, Any], compile: Compile) -> list[Subschema]:
    """Give a subschema the applicators of its schema; return the subschemas that apply to the same value."""
    in_place = _add_combined(node, schema, compile)
    in_place += _add_conditional(node, schema, compile)
    in_place += _add_dependent(node, schema, compile)
    _add_members(node, schema, compile)
    _add_elements(node, schema, compile)
    return in_place


def _add_combined(node: Subschema, schema: Mapping[str, Any], compile: Compile) -> list[Subschema]:
    in_place: list[Subschema] = []
    if "allOf" in schema:
        every = _list(schema, "allOf", compile)
        node.checks.append(lambda run, value, path: check_all(run, every, value, path))
        node.applied.append(lambda run, value: every)
        in_place += every
    for keyword, is_enough in (("anyOf", lambda kept: kept > 0), ("oneOf", lambda kept: kept == 1)):
        if keyword in schema:
            options = _list(schema, keyword, compile)
            node.checks.append(_options(options, keyword, is_enough))
            node.applied.append(_kept(options))
            in_place += options
    if "not" in schema:
        refused = compile(schema["not"], ("not",))
        node.checks.append(_report("not", lambda run, value: not refused.is_kept(run, value)))
        in_place.append(refused)
    return in_place


def check_all(run: Evaluation, parts: Sequence[Subschema], value: Any, path: Path) -> bool:
    """Return whether the value keeps all of the subschemas; report what it breaks."""
    good = True
    for part in parts:
        if not part.check(run, value, path):
            good = False
            if not run.must_go_on:
                break
    return good


def _options(options: Sequence[Subschema], keyword: str, is_enough: Callable[[int], bool]) -> Check:
    def test(run: Evaluation, value: Any) -> bool:
        kept = 0
        for option in options:
            kept += option.is_kept(run, value)
            if kept and keyword == "anyOf":
                break
        return is_enough(kept)

    return _report(keyword, test)


def _kept(options: Sequence[Subschema]) -> Callable[[Evaluation, Any], Sequence[Subschema]]:
    return lambda run, value: [option for option in options if option.is_kept(run, value)]


def _report(keyword: str, test: Callable[[Evaluation, Any], bool]) -> Check:
    def check(run: Evaluation, value: Any, path: Path) -> bool:
        if test(run, value):
            return True
        run.report(path, keyword, None)
        return False

    return check


def _add_conditional(node: Subschema, schema: Mapping[str, Any], compile: Compile) -> list[Subschema]:
    if "if" not in schema:
        return []
    condition = compile(schema["if"], ("if",))
    branches = [compile(schema.get(keyword, True), (keyword,)) for keyword in ("then", "else")]

    def check(run: Evaluation, value: Any, path: Path) -> bool:
        return branches[not condition.is_kept(run, value)].check(run, value, path)

    def applied(run: Evaluation, value: Any) -> Sequence[Subschema]:
        return (condition, branches[0]) if condition.is_kept(run, value) else (branches[1],)

    node.checks.append(check)
    node.applied.append(applied)
    return [condition, *branches]


def _add_dependent(node: Subschema, schema: Mapping[str, Any], compile: Compile) -> list[Subschema]:
    if "dependentSchemas" not in schema:
        return []
    dependent = _map(schema, "dependentSchemas", compile)

    def applied(run: Evaluation, value: Any) -> Sequence[Subschema]:
        if not isinstance(value, dict):
            return ()
        run.spend(len(dependent) // 8)
        return [part for name, part in dependent.items() if name in value]

    node.checks.append(lambda run, value, path: check_all(run, applied(run, value), value, path))
    node.applied.append(applied)
    return list(dependent.values())


def _add_members(node: Subschema, schema: Mapping[str, Any], compile: Compile) -> None:
    if not {"properties", "patternProperties", "additionalProperties", "propertyNames"} & schema.keys():
        return
    properties = _map(schema, "properties", compile)
    patterns = [(searcher(name), part) for name, part in _map(schema, "patternProperties", compile).items()]
    others = _one(schema, "additionalProperties", compile)
    name_rule = _one(schema, "propertyNames", compile)

    def rules(run: Evaluation, name: str) -> list[Subschema]:
        found = [properties[name]] if name in properties else []
        found += [part for search, part in patterns if search(run, name)]
        return found or ([] if others is None else [others])

    def check(run: Evaluation, value: Any, path: Path) -> bool:
        if not isinstance(value, dict):
            return True
        run.spend(len(value))
        good = True
        for name, member in value.items():
            if name_rule is not None and not name_rule.check(run, name, (path, name)):
                good = False
            for rule in rules(run, name):
                good = rule.check(run, member, (path, name)) and good
            if not good and not run.must_go_on:
                return False
        return good

    def names(run: Evaluation, value: dict[str, Any]) -> set[str]:
        run.spend(len(value))
        return {name for name in value if rules(run, name)}

    node.checks.append(check)
    node.names = names


def _add_elements(node: Subschema, schema: Mapping[str, Any], compile: Compile) -> None:
    prefix = _list(schema, "prefixItems", compile) if "prefixItems" in schema else []
    rest = _one(schema, "items", compile)
    contained = _one(schema, "contains", compile)
    if prefix or rest is not None:
        node.checks.append(_elements(prefix, rest))
    if contained is not None:
        least, most = _count(schema, "minContains"), _count(schema, "maxContains")
        least = 1 if least is None else least

        def has_enough(run: Evaluation, value: Any) -> bool:
            if not isinstance(value, list):
                return True
            found = sum([contained.is_kept(run, element) for element in value])
            return found >= least and (most is None or found <= most)

        node.checks.append(_report("contains", has_enough))

    def indexes(run: Evaluation, value: list[Any]) -> set[int]:
        run.spend(len(value))
        found = set(range(len(value) if rest is not None else min(len(prefix), len(value))))
        if contained is not None:
            found |= {index for index, element in enumerate(value) if contained.is_kept(run, element)}
        return found

    node.indexes = indexes


def _elements(prefix: Sequence[Subschema], rest: Subschema | None) -> Check:
    def check(run: Evaluation, value: Any, path: Path) -> bool:
        if not isinstance(value, list):
            return True
        is_type = None if prefix or rest is None else rest.only_type()
        if is_type is not None:
            run.spend(len(value) // 4)
            if all([is_type(run, element) for element in value]):
                return True
        good = True
        for index, element in enumerate(value if rest is not None else value[: len(prefix)]):
            rule = prefix[index] if index < len(prefix) else rest
            if rule is not None and not rule.check(run, element, (path, index)):
                good = False
                if not run.must_go_on:
                    break
        return good

    return check


def _count(schema: Mapping[str, Any], keyword: str) -> int | None:
    if keyword not in schema:
        return None
    try:
        return count(schema[keyword])
    except BadKeyword as error:
        raise BadKeyword(f"{keyword} {error}") from None


def _one(schema: Mapping[str, Any], keyword: str, compile: Compile) -> Subschema | None:
    return compile(schema[keyword], (keyword,)) if keyword in schema else None


def _list(schema: Mapping[str, Any], keyword: str, compile: Compile) -> list[Subschema]:
    parts = schema[keyword]
    if not isinstance(parts, list) or not parts:
        raise BadKeyword(f"{keyword} must be an array of schemas that is not empty")
    return [compile(part, (keyword, index)) for index, part in enumerate(parts)]


def _map(schema: Mapping[str, Any], keyword: str, compile: Compile) -> dict[str, Subschema]:
    parts = schema.get(keyword, {})
    if not isinstance(parts, dict):
        raise BadKeyword(f"{keyword} must be an object of schemas")
    return {name: compile(part, (keyword, name)) for name, part in parts.items()}


def add_unevaluated_properties(node: Subschema, rule: Subschema) -> None:
    """Give a subschema its `unevaluatedProperties`, whose schema is `rule`."""

    def check(run: Evaluation, value: Any, path: Path) -> bool:
        if not isinstance(value, dict):
            return True
        names = _names(node, run, value)
        return all([rule.check(run, member, (path, name)) for name, member in value.items() if name not in names])

    node.checks.append(check)
    node.evaluates_all_names = True


def add_unevaluated_items(node: Subschema, rule: Subschema) -> None:
    """Give a subschema its `unevaluatedItems`, whose schema is `rule`."""

    def check(run: Evaluation, value: Any, path: Path) -> bool:
        if not isinstance(value, list):
            return True
        indexes = _indexes(node, run, value)
        return all([rule.check(run, value[at], (path, at)) for at in range(len(value)) if at not in indexes])

    node.checks.append(check)
    node.evaluates_all_items = True


def _names(node: Subschema, run: Evaluation, value: dict[str, Any]) -> set[str]:
    run.enter()
    found = set() if node.names is None else node.names(run, value)
    for applied in node.applied:
        for part in applied(run, value):
            found |= set(value) if part.evaluates_all_names else _names(part, run, value)
    run.depth -= 1
    return found


def _indexes(node: Subschema, run: Evaluation, value: list[Any]) -> set[int]:
    run.enter()
    found = set() if node.indexes is None else node.indexes(run, value)
    for applied in node.applied:
        for part in applied(run, value):
            found |= set(range(len(value))) if part.evaluates_all_items else _indexes(part, run, value)
    run.depth -= 1
    return found
