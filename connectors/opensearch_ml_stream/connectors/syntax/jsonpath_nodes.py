"""Evaluate JSONPath queries (RFC 9535) node by node, without recursion, each step counted by a work limit."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from opensearch_ml_stream.connectors.syntax.jsonpath_values import CONTAINERS
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
