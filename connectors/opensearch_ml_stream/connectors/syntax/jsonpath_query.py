"""Compile JSONPath queries (RFC 9535) into functions that run under a work limit.

The library python-jsonpath parses a path. Its own evaluation visits nodes without a limit, recursively, and copies the
location of each, so its segments, selectors and filters become functions here. They evaluate node by node, without
recursion, and a work limit counts each step.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jsonpath
from jsonpath import filter as ast
from jsonpath import selectors
from jsonpath.segments import JSONPathRecursiveDescentSegment

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.syntax import jsonpath_values
from opensearch_ml_stream.connectors.syntax.jsonpath_values import COMPARISONS, CONTAINERS, MISSING
from opensearch_ml_stream.connectors.syntax.regex import compile_regex
from opensearch_ml_stream.connectors.syntax.work_limit import WorkLimit

_SCALARS_A_STEP = 8  # passed over by a descent
_CHARS_A_STEP = 50  # of strings that are found more than once


class Node(NamedTuple):
    """A value in a document, with the array or object that holds it under `key`; None for the root."""

    value: Any
    container: Any = None
    key: Any = None


class Evaluation:
    """What all queries of one evaluation share: the root, the work, and the results of queries of the root."""

    __slots__ = ("root", "root_queries", "work")

    def __init__(self, root: Any, work: WorkLimit) -> None:
        self.root = root
        self.work = work
        self.root_queries: dict[Query, list[Node]] = {}


Selector = Callable[[Any, Evaluation], Sequence[Node]]
Query = tuple[tuple[bool, tuple[Selector, ...]], ...]
"""Segments: whether one descends, and its selectors."""

Test = Callable[[Any, Evaluation], bool]
"""Says whether a value meets the condition of a filter."""


def evaluate(query: Query, value: Any, evaluation: Evaluation) -> list[Node]:
    """Return the nodes that a query finds, in the order of the RFC. The limit's error if it takes too much work."""
    nodes = [Node(value)]
    for descends, select in query:
        starts = (
            (inner for node in nodes for inner in _descend(node.value, evaluation))
            if descends
            else (node.value for node in nodes)
        )
        nodes = [found for start in starts for selector in select for found in selector(start, evaluation)]
    return nodes


def evaluate_inner(query: Query, value: Any, evaluation: Evaluation) -> list[Node]:
    """Return the nodes of a query in a filter, which has a price of its own."""
    evaluation.work.spend(2)
    return evaluate(query, value, evaluation)


def _descend(value: Any, evaluation: Evaluation) -> Iterator[Any]:
    """Return the value and all arrays and objects in it, each before what it holds."""
    pending = [value]
    while pending:
        value = pending.pop()
        yield value
        if isinstance(value, CONTAINERS):
            evaluation.work.spend(1 + len(value) // _SCALARS_A_STEP)
            children = value if isinstance(value, list) else value.values()
            pending += reversed([child for child in children if isinstance(child, CONTAINERS)])


def may_overlap(query: Query) -> bool:
    """Return whether the query may find a node twice, or nodes inside each other."""
    return any(descends or len(select) > 1 for descends, select in query)


def spend_on_values(values: list[Any], work: WorkLimit) -> None:
    """Pay for all that the values hold, once for each, as it would be printed."""
    pending = [values]
    while pending:
        children = pending.pop()
        work.spend(1 + len(children) // _SCALARS_A_STEP)
        for child in children:
            if isinstance(child, str):
                work.spend(len(child) // _CHARS_A_STEP)
            elif isinstance(child, CONTAINERS):
                pending.append(child if isinstance(child, list) else list(child.values()))


def select_name(name: str) -> Selector:
    """Return the selector of an object's member."""

    def select(value: Any, evaluation: Evaluation) -> Sequence[Node]:
        evaluation.work.spend(1)
        return (Node(value[name], value, name),) if isinstance(value, dict) and name in value else ()

    return select


def select_members(names: tuple[str, ...], *, only_all: bool) -> Selector:
    """Return the selector of an object with these members, as far as there are any, or `only_all`."""

    def select(value: Any, evaluation: Evaluation) -> Sequence[Node]:
        evaluation.work.spend(1 + len(names))
        if not isinstance(value, dict):
            return ()
        members = {name: value[name] for name in names if name in value}
        return () if only_all and len(members) < len(names) else (Node(members),)

    return select


def select_index(index: int) -> Selector:
    """Return the selector of an array's element, from the end if the index is negative."""

    def select(value: Any, evaluation: Evaluation) -> Sequence[Node]:
        evaluation.work.spend(1)
        if not isinstance(value, list) or not -len(value) <= index < len(value):
            return ()
        return (Node(value[index], value, index % len(value)),)

    return select


def select_slice(part: slice) -> Selector:
    """Return the selector of a slice of an array."""

    def select(value: Any, evaluation: Evaluation) -> Sequence[Node]:
        indexes = range(*part.indices(len(value))) if isinstance(value, list) and part.step != 0 else ()
        evaluation.work.spend(1 + len(indexes))
        return [Node(value[index], value, index) for index in indexes]

    return select


def select_all(value: Any, evaluation: Evaluation) -> Sequence[Node]:
    """Return all that an array or object holds."""
    if not isinstance(value, CONTAINERS):
        return ()
    evaluation.work.spend(2 + len(value))
    items = value.items() if isinstance(value, dict) else enumerate(value)
    return [Node(item, value, key) for key, item in items]


def select_by_filter(test: Test) -> Selector:
    """Return the selector of what meets a condition."""

    def select(value: Any, evaluation: Evaluation) -> Sequence[Node]:
        return [node for node in select_all(value, evaluation) if test(node.value, evaluation)]

    return select


MAX_NESTING = 20  # of filters and negations in each other


_Value = Callable[[Any, Evaluation], Any]


def compile_query(path: jsonpath.JSONPath, nesting: int = 0) -> Query:
    """Return the query of a parsed path. InvalidRequest for what RFC 9535 does not have, or too deep nesting."""
    if path.pseudo_root:
        raise InvalidRequest("A JSONPath begins with $ or with a name")
    return tuple(
        (
            isinstance(segment, JSONPathRecursiveDescentSegment),
            tuple(_selector(selector, nesting) for selector in segment.selectors),
        )
        for segment in path.segments
    )


def compile_reading(path: jsonpath.JSONPath) -> Query:
    """Return the query of a path whose values are read: several names at its end give an object, as in Jayway."""
    query = compile_query(path)
    if not (names := names_at_end(path)):
        return query
    descends = query[-1][0]
    return (*query[:-1], (descends, (select_members(names, only_all=descends),)))


def names_at_end(path: jsonpath.JSONPath) -> tuple[str, ...]:
    """Return the names in the last segment of a path, if they are several and all that it has."""
    last = path.segments[-1].selectors if path.segments else ()
    names = tuple(selector.name for selector in last if isinstance(selector, selectors.NameSelector))
    return names if len(names) == len(last) > 1 else ()


def too_nested() -> InvalidRequest:
    """Return the error for a path whose filters are nested too deeply."""
    return InvalidRequest(f"A JSONPath may nest filters and negations {MAX_NESTING} deep")


def _selector(selector: selectors.JSONPathSelector, nesting: int) -> Selector:
    if isinstance(selector, selectors.NameSelector):
        return select_name(selector.name)
    if isinstance(selector, selectors.IndexSelector):
        return select_index(selector.index)
    if isinstance(selector, selectors.WildcardSelector):
        return select_all
    if isinstance(selector, selectors.SliceSelector):
        return select_slice(selector.slice)
    if isinstance(selector, selectors.Filter):
        return select_by_filter(_test(selector.expression.expression, nesting + 1))
    raise InvalidRequest(f"JSONPath: [{selector}] is not understood here; names in brackets need quotes")


def _test(expression: ast.BaseExpression, nesting: int) -> Test:
    """Return the function that says whether a value meets an expression."""
    if nesting > MAX_NESTING:
        raise too_nested()
    if isinstance(expression, ast.PrefixExpression):
        inner = _test(expression.right, nesting + 1)
        return lambda value, evaluation: not inner(value, evaluation)
    if isinstance(expression, ast.InfixExpression):
        return _chain(expression, nesting) if expression.logical else _comparison(expression, nesting)
    if isinstance(expression, ast.FilterQuery):
        nodes = _nodes(expression, nesting)
        return lambda value, evaluation: bool(nodes(value, evaluation))
    if isinstance(expression, ast.FunctionExtension) and expression.name in ("match", "search"):
        return _matching(expression.args[1], expression.args[0], nesting, whole=expression.name == "match")
    raise InvalidRequest(f"JSONPath: [{expression}] is no condition")


def _chain(expression: ast.InfixExpression, nesting: int) -> Test:
    """Return the test of `a && b && c` or `a || b || c`, which the library nests in each other."""
    operands: list[Test] = []
    pending: list[ast.BaseExpression] = [expression]
    while pending:
        part = pending.pop()
        if isinstance(part, ast.InfixExpression) and part.operator == expression.operator:
            pending += (part.right, part.left)
        else:
            operands.append(_test(part, nesting + 1))

    def test(value: Any, evaluation: Evaluation) -> bool:
        evaluation.work.spend(len(operands))
        results = (operand(value, evaluation) for operand in operands)
        return all(results) if expression.operator == "&&" else any(results)

    return test


def _comparison(expression: ast.InfixExpression, nesting: int) -> Test:
    if expression.operator == "=~":
        return _matching(expression.right, expression.left, nesting, whole=True)
    compare = COMPARISONS[expression.operator]
    left, right = _value(expression.left, nesting), _value(expression.right, nesting)

    def test(value: Any, evaluation: Evaluation) -> bool:
        evaluation.work.spend(2)
        return compare(left(value, evaluation), right(value, evaluation), evaluation.work)

    return test


def _matching(pattern: ast.BaseExpression, subject: ast.BaseExpression, nesting: int, *, whole: bool) -> Test:
    text = _value(subject, nesting)
    if isinstance(pattern, ast.RegexLiteral | ast.StringLiteral):
        literal = pattern.value
        if isinstance(literal, str):
            regex = compile_regex(literal)
        else:
            flags = literal.flags
            regex = compile_regex(
                literal.pattern, dot_all=bool(flags & re.DOTALL), ignore_case=bool(flags & re.IGNORECASE)
            )
        return lambda value, evaluation: jsonpath_values.matches(
            regex, text(value, evaluation), evaluation.work, whole=whole
        )
    source = _value(pattern, nesting)
    return lambda value, evaluation: jsonpath_values.matches_pattern(
        source(value, evaluation), text(value, evaluation), evaluation.work, whole=whole
    )


def _value(expression: ast.BaseExpression, nesting: int) -> _Value:
    """Return the function that gives an expression's value, MISSING for a query that finds nothing."""
    if nesting > MAX_NESTING:
        raise too_nested()
    if isinstance(expression, ast.FilterQuery):
        nodes = _nodes(expression, nesting)
        return lambda value, evaluation: _only_value(nodes(value, evaluation))
    if isinstance(expression, ast.FunctionExtension):
        return _function(expression, nesting)
    constant = _constant(expression)
    return lambda value, evaluation: constant


def _constant(expression: ast.BaseExpression) -> Any:
    if isinstance(expression, ast.ListLiteral):
        return [_constant(item) for item in expression.items]
    if isinstance(expression, ast.Nil):
        return None
    if isinstance(expression, ast.Undefined):
        return MISSING
    if isinstance(expression, ast.FilterExpressionLiteral) and not isinstance(expression, ast.RegexLiteral):
        return expression.value
    raise InvalidRequest(f"JSONPath: [{expression}] is no value")


def _only_value(nodes: Sequence[Node]) -> Any:
    if len(nodes) > 1:  # only beside `in` and `contains`
        return [node.value for node in nodes]
    return nodes[0].value if nodes else MISSING


def _function(expression: ast.FunctionExtension, nesting: int) -> _Value:
    argument = expression.args[0]
    if expression.name == "length":
        inner = _value(argument, nesting + 1)
        return lambda value, evaluation: jsonpath_values.length(inner(value, evaluation))
    if not isinstance(argument, ast.FilterQuery) or expression.name not in ("count", "value"):
        raise InvalidRequest(f"JSONPath: [{expression}] is no value")
    nodes = _nodes(argument, nesting)
    if expression.name == "count":
        return lambda value, evaluation: len(nodes(value, evaluation))
    return lambda value, evaluation: found[0].value if len(found := nodes(value, evaluation)) == 1 else MISSING


def _nodes(expression: ast.FilterQuery, nesting: int) -> Callable[[Any, Evaluation], Sequence[Node]]:
    """Return the function that gives the nodes of a query in a filter, of the root only once."""
    query = compile_query(expression.path, nesting)
    if isinstance(expression, ast.RelativeFilterQuery):
        return lambda value, evaluation: evaluate_inner(query, value, evaluation)
    if not isinstance(expression, ast.RootFilterQuery):
        raise InvalidRequest("JSONPath: a query in a filter begins with @ or $")

    def of_root(value: Any, evaluation: Evaluation) -> Sequence[Node]:
        if query not in evaluation.root_queries:
            evaluation.root_queries[query] = evaluate(query, evaluation.root, evaluation)
        return evaluation.root_queries[query]

    return of_root
