"""A compiled subschema: its assertions, and its applicators, which hold other subschemas."""

from collections.abc import Callable, Sequence
from typing import Any

from opensearch_ml_stream.connectors.json_schema.assertions import Test
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
