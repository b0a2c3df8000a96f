"""Imports point one way, extensions -> plugin -> rest_handlers -> connectors, without a cycle of modules or folders."""

import ast
from collections.abc import Mapping, Set

from integration_tests.structure.modules import folder, imports, modules, room

# From the inside out: each imports from itself and from those before it. `runtimes` runs in interpreters that have
# nothing else of ours.
CORE_IMPORTS_OF_EXTENSIONS = 49  # while these move out, one after the other
ORDER = ("connectors", "rest_handlers", "client", "plugin", "extensions")


def test_a_root_imports_only_from_those_further_in() -> None:
    wrong = [
        (name, other)
        for name, imported in imports().items()
        for other in imported
        if _root(name) in ORDER and _root(other) in ORDER and ORDER.index(_root(name)) < ORDER.index(_root(other))
    ]
    assert {other for _, other in wrong if not other.startswith("extensions.")} == set()
    assert len(wrong) <= CORE_IMPORTS_OF_EXTENSIONS


def test_models_processes_import_nothing_else_of_ours() -> None:
    outside = [(name, other) for name, imported in imports().items() for other in imported if _root(name) == "runtimes"]
    assert [pair for pair in outside if _root(pair[1]) != "runtimes"] == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Packages count as what their `__init__` imports, since importing a module runs it."""
    graph = {name: set(imported) for name, imported in imports().items()}
    for name, imported in graph.items():
        for other in tuple(imported):
            parents = (other.rsplit(".", level)[0] for level in range(1, other.count(".") + 1))
            imported |= {parent for parent in parents if parent in graph and not f"{name}.".startswith(f"{parent}.")}
    assert _circles(graph) == set()


def test_no_folders_import_each_other_in_a_circle() -> None:
    """The top modules of a room are its vocabulary, which its folders import, and stand apart."""
    graph: dict[str, set[str]] = {}
    for name, imported in imports().items():
        own = folder(name)
        others = {folder(other) for other in imported}
        graph.setdefault(own, set()).update(other for other in others if other not in (own, room(other)))
    assert _circles({name: others for name, others in graph.items() if name != room(name)}) == set()


def test_no_rooms_import_each_other_in_a_circle() -> None:
    graph: dict[str, set[str]] = {}
    for name, imported in imports().items():
        if _is_top_of_a_root(name):
            continue
        others = {room(other) for other in imported if not _is_top_of_a_root(other)}
        graph.setdefault(room(name), set()).update(others - {room(name)})
    assert _circles(graph) == set()


def test_nothing_is_imported_inside_a_function() -> None:
    for name, file in modules().items():
        tree = ast.parse(file.read_text("utf-8"))
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        inside = [node for function in functions for node in ast.walk(function)]
        assert [(name, node.lineno) for node in inside if isinstance(node, ast.Import | ast.ImportFrom)] == []


def _root(module: str) -> str:
    return module.partition(".")[0]


def _is_top_of_a_root(module: str) -> bool:
    """Such as `plugin.app`, which opens the rooms."""
    return folder(module) in ("plugin", "extensions", "runtimes")


def _circles(graph: Mapping[str, Set[str]]) -> set[str]:
    """Those that lie on a circle, and what lies between two."""
    left = {name: set(others) for name, others in graph.items()}
    while True:
        imported = set[str]().union(*left.values())
        kept = {name for name, others in left.items() if others & left.keys() and name in imported}
        if len(kept) == len(left):
            return kept
        left = {name: left[name] & kept for name in kept}
