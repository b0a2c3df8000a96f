"""The state of one validation: the rest of its budget, and the violations found so far."""

from typing import Any, NamedTuple

MAX_STEPS = 100_000  # some 50 ms; a step is a subschema, a comparison, or 0.5 µs of a pattern on its text
MAX_DEPTH = 128  # of subschemas within each other, references included
MAX_VIOLATIONS = 10
MAX_NAME_CHARS = 100  # of a property, in a path that is shown

Path = tuple["Path", str | int] | None  # of a value within the root: the path of what holds it, and its key; None: root


class TooComplex(Exception):
    """The validation needs more steps or nesting than it may take; the message says which."""


class Violation(NamedTuple):
    """A rule that a value breaks: the JSON path, the keyword, and the keyword's value. Never the value itself."""

    path: str
    keyword: str
    rule: Any


class Evaluation:
    """The state of one validation. While `quiet` is not 0, violations count but are not reported (`anyOf`, `not`)."""

    __slots__ = ("depth", "quiet", "steps", "violations")

    def __init__(self) -> None:
        self.steps = MAX_STEPS
        self.depth = 0
        self.quiet = 0
        self.violations: list[Violation] = []

    @property
    def must_go_on(self) -> bool:
        """Return whether a violation leaves others to be found: not if nobody reads them, or there are enough."""
        return not self.quiet and len(self.violations) < MAX_VIOLATIONS

    def spend(self, steps: int) -> None:
        """Take steps from the budget. TooComplex if it has not as many."""
        self.steps -= steps
        if self.steps < 0:
            raise TooComplex(f"it takes more than {MAX_STEPS} steps to validate this value")

    def enter(self) -> None:
        """Begin with a subschema; `depth` is to be lowered after it. TooComplex if it lies too deep."""
        self.spend(1)
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise TooComplex(f"its subschemas lie more than {MAX_DEPTH} deep within each other for this value")

    def report(self, path: Path, keyword: str, rule: Any) -> None:
        """Note a violation."""
        if self.must_go_on:
            self.violations.append(Violation(to_json_path(path), keyword, rule))


def to_json_path(path: Path) -> str:
    """Return a path as text: `$.parameters.messages[0]`."""
    keys: list[str | int] = []
    while path is not None:
        path, key = path
        keys.append(key)
    parts = [f"[{key}]" if isinstance(key, int) else f".{key[:MAX_NAME_CHARS]}" for key in reversed(keys)]
    return "$" + "".join(parts)
