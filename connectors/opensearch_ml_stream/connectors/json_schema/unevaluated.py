"""`unevaluatedProperties` and `unevaluatedItems`: for what no other keyword has looked at, here or in place."""

from typing import Any

from opensearch_ml_stream.connectors.json_schema.evaluation import Evaluation, Path
from opensearch_ml_stream.connectors.json_schema.subschema import Subschema


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
