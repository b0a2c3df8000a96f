"""Which mutants a module has: each differs from it in one place. See scripts/mutants.py, which tests them."""

import ast
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import Any

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider
from mutmut.mutation.mutators import mutation_operators, operator_arg_removal, operator_assignment, operator_string

SEED = 1

_COMMENT = re.compile(r"\s+# .*$")
_PARENTHESES = {"lpar": [cst.LeftParen()], "rpar": [cst.RightParen()]}

Key = tuple[str, str, tuple[str, ...], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one module: `code` is the whole module with it.

    `removed` and `added` are the lines that differ, without indentation and comments. `rank` is the place in a sample.
    """

    module: str
    function: str
    line: int
    removed: tuple[str, ...]
    added: tuple[str, ...]
    code: str
    rank: str

    @property
    def key(self) -> Key:
        return self.module, self.function, self.removed, self.added

    def __str__(self) -> str:
        diff = [f"-{line}" for line in self.removed] + [f"+{line}" for line in self.added]
        return "\n".join([f"### {self.module}: {self.function}", "", f"Line {self.line}.", "", "```diff", *diff, "```"])


def read_keys(text: str) -> dict[Key, str]:
    """The keys of the mutants in `text`, which has them as `str` of a Mutant gives them, each with its comment."""
    entries: dict[Key, str] = {}
    for heading, comment, diff in re.findall(r"^### (.+)\n\n((?:.+\n)+)\n```diff\n((?:.*\n)*?)```", text, re.MULTILINE):
        module, _, function = heading.partition(": ")
        removed, added = _changed_lines(diff.splitlines())
        entries[module, function, removed, added] = comment.strip()
    return entries


def sample_of(root: Path, paths: list[Path], count: int) -> list[Mutant]:
    """The `count` mutants of lowest rank in the modules at `paths`."""
    possible = [found for path in paths for found in _mutants_of(path, path.relative_to(root).as_posix())]
    sample: list[Mutant] = []
    for _, make in sorted(possible, key=lambda found: found[0]):
        if len(sample) < count and (mutant := make()) is not None:
            sample.append(mutant)
    return sorted(sample, key=lambda mutant: (mutant.module, mutant.line))


class _Collector(cst.CSTVisitor):
    """Finds every node with each of its replacements, the function that holds it and its line."""

    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[cst.CSTNode, cst.CSTNode, str, int]] = []
        self._names: list[str] = []
        self._functions = 0

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.Annotation | cst.Import | cst.ImportFrom | cst.Decorator) or _is_slots(node):
            return False
        if isinstance(node, cst.FunctionDef | cst.ClassDef):
            self._names.append(node.name.value)
            self._functions += isinstance(node, cst.FunctionDef)
        function = ".".join(self._names) or "(module)"
        position: Any = self.get_metadata(PositionProvider, node)
        line = int(position.start.line)
        self.found += [(node, replacement, function, line) for replacement in self._replacements(node)]
        return True

    def on_leave(self, original_node: cst.CSTNode) -> None:
        if isinstance(original_node, cst.FunctionDef | cst.ClassDef):
            self._names.pop()
            self._functions -= isinstance(original_node, cst.FunctionDef)

    def _replacements(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        if not self._functions and not isinstance(node, cst.BaseNumber | cst.SimpleString | cst.Name):
            return
        for kind, mutate in mutation_operators:
            if isinstance(node, kind):
                yield from _fewer(node, mutate, list(mutate(node)))
        yield from _own_mutations(node)


def _fewer(node: cst.CSTNode, mutate: Callable[..., object], replacements: list[cst.CSTNode]) -> Sequence[cst.CSTNode]:
    """Leave out those of mutmut's mutations that any test kills, that do nothing, and those of messages."""
    if mutate is operator_arg_removal and isinstance(node, cst.Call):
        keywords = [number for number, argument in enumerate(node.args) if argument.keyword is not None]
        return [node.with_changes(args=[*node.args[:number], *node.args[number + 1 :]]) for number in keywords]
    if mutate is operator_string and isinstance(node, cst.SimpleString):
        return [] if node.value.count(" ") > 2 else replacements[:1]
    if mutate is operator_assignment and isinstance(node, cst.Assign | cst.AnnAssign):
        is_boolean = isinstance(node.value, cst.Name) and node.value.value in ("True", "False")
        return [] if is_boolean else replacements
    return replacements


def _own_mutations(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Negate conditions, take one side of `and` and `or`, leave out statements."""
    if isinstance(node, cst.If | cst.While | cst.CompIf) and not _is_negated_by_mutmut(node.test):
        yield node.with_changes(test=cst.UnaryOperation(cst.Not(), node.test.with_changes(**_PARENTHESES)))
    elif isinstance(node, cst.BooleanOperation):
        yield node.left.with_changes(**_PARENTHESES)
        yield node.right.with_changes(**_PARENTHESES)
    elif isinstance(node, cst.Raise | cst.Del) or (
        isinstance(node, cst.Expr) and isinstance(node.value, cst.Call | cst.Await)
    ):
        yield cst.Pass()


def _is_negated_by_mutmut(condition: cst.BaseExpression) -> bool:
    if isinstance(condition, cst.Comparison) and len(condition.comparisons) == 1:
        operator = condition.comparisons[0].operator
        return isinstance(operator, cst.Equal | cst.NotEqual | cst.In | cst.NotIn | cst.Is | cst.IsNot)
    return isinstance(condition, cst.UnaryOperation) and isinstance(condition.operator, cst.Not)


def _is_slots(node: cst.CSTNode) -> bool:
    target = node.targets[0].target if isinstance(node, cst.Assign) else None
    return isinstance(target, cst.Name) and target.value == "__slots__"


def _mutants_of(path: Path, module: str) -> Iterator[tuple[str, Callable[[], Mutant | None]]]:
    """Each possible mutant of a module: its rank, and a function that makes it (None where it is no change)."""
    source = path.read_text("utf-8")
    wrapper = MetadataWrapper(cst.parse_module(source))
    collector = _Collector()
    wrapper.visit(collector)
    seen: Counter[str] = Counter()
    for node, replacement, function, line in collector.found:
        change = f"{wrapper.module.code_for_node(node)}\0{wrapper.module.code_for_node(replacement)}"
        text = f"{SEED}\0{module}\0{function}\0{change}"
        seen[text] += 1
        rank = hashlib.sha256(f"{text}\0{seen[text]}".encode()).hexdigest()

        def make(
            node: cst.CSTNode = node,
            replacement: cst.CSTNode = replacement,
            function: str = function,
            line: int = line,
            rank: str = rank,
        ) -> Mutant | None:
            changed = wrapper.module.deep_replace(node, replacement)
            code = changed.code if isinstance(changed, cst.Module) else source
            if not _differ(source, code):
                return None
            diff = list(unified_diff(source.splitlines(), code.splitlines(), lineterm="", n=0))
            return Mutant(module, function, line, *_changed_lines(diff[2:]), code, rank)

        yield rank, make


def _changed_lines(diff: list[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    lines = [(line[:1], changed_line(line[1:])) for line in diff]
    removed = tuple(line for sign, line in lines if sign == "-")
    return removed, tuple(line for sign, line in lines if sign == "+")


def changed_line(line: str) -> str:
    """The line as a key has it: without indentation and comment."""
    return _COMMENT.sub("", line.strip())


def _differ(source: str, code: str) -> bool:
    """Whether `code` is Python, and other Python than `source`."""
    try:
        return ast.dump(ast.parse(code)) != ast.dump(ast.parse(source))
    except SyntaxError:
        return False
