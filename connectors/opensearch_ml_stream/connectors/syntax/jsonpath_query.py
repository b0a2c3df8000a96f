"""Compile JSONPath queries (RFC 9535) into functions that run under a work limit.

The library python-jsonpath parses a path. Its own evaluation visits nodes without a limit, recursively, and copies the
location of each, so its segments, selectors and filters become functions here.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

import jsonpath
from jsonpath import filter as ast
from jsonpath import selectors
from jsonpath.segments import JSONPathRecursiveDescentSegment

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.syntax import jsonpath_values
from opensearch_ml_stream.connectors.syntax.jsonpath_nodes import (
    Evaluation,
    Node,
    Query,
    Selector,
    Test,
    evaluate,
    evaluate_inner,
    select_all,
    select_by_filter,
    select_index,
    select_members,
    select_name,
    select_slice,
)
from opensearch_ml_stream.connectors.syntax.jsonpath_values import COMPARISONS, MISSING
from opensearch_ml_stream.connectors.syntax.regex import compile_regex

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
