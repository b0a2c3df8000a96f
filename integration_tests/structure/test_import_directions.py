"""Imports point one way, extensions -> plugin -> rest_handlers -> connectors, without a cycle of modules or folders."""

import ast
import subprocess
import sys
from collections.abc import Mapping, Set

import pytest
from integration_tests.structure.modules import PACKAGE, folder, imports, modules, room

from opensearch_ml_stream.plugin.extension import Extension
from opensearch_ml_stream.plugin.installed_extensions import own_extensions

# From the inside out: each imports from itself and from those before it.
ORDER = ("connectors", "rest_handlers", "client", "plugin", "extensions")

# In other programs: those of users, and interpreters of models that have nothing else of ours.
ALONE = ("client", "runtimes")

# Opens one worker's sidecar with the extensions that it is given off, and prints what was loaded beyond declarations.
_OPEN_A_SIDECAR = """
import asyncio, sys, tempfile
from dataclasses import replace
from pathlib import Path
from opensearch_ml_stream.plugin.installed_extensions import default_settings, own_extensions

switches = dict.fromkeys(sys.argv[1:], False)
settings = replace(default_settings(own_extensions()), store="sqlite:///:memory:", extensions=switches)
declared = set(sys.modules)

from opensearch_ml_stream.plugin.app import open_sidecar

async def main():
    with tempfile.TemporaryDirectory() as folder:
        async with open_sidecar(settings, Path(folder)) as sidecar:
            for make_service in sidecar.services:
                make_service()
            print("opened", *sys.modules.keys() - declared)

asyncio.run(main())
"""


def test_a_root_imports_only_from_those_further_in() -> None:
    wrong = [
        (name, other)
        for name, imported in imports().items()
        for other in imported
        if _root(name) in ORDER and _root(other) in ORDER and ORDER.index(_root(name)) < ORDER.index(_root(other))
    ]
    assert wrong == []


def test_an_extension_imports_another_only_through_the_face_that_both_declare() -> None:
    faces = {(each.name, name): _face(name) for each in own_extensions() for name in each.requires}
    between = [
        (room(name).partition(".")[2], room(other).partition(".")[2], other)
        for name, imported in imports().items()
        for other in imported
        if _root(name) == _root(other) == "extensions" and room(name) != room(other)
    ]
    assert between != []
    assert [(user, used) for user, of, used in between if used != faces.get((user, of))] == []


@pytest.mark.parametrize("extension", own_extensions(), ids=lambda extension: extension.name)
def test_nothing_of_an_extension_that_is_off_is_imported_but_its_declaration(extension: Extension) -> None:
    """Those that require it are off, too."""
    off = [each.name for each in own_extensions() if extension.name in (each.name, *each.requires)]
    command = [sys.executable, "-c", _OPEN_A_SIDECAR, *off]
    printed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    opened, *loaded = printed.split()
    assert opened == "opened"
    own = (f"{PACKAGE}.extensions.{extension.name}.", f"{PACKAGE}.{extension.name}.")  # `runtimes` is a package, too
    assert [name for name in loaded if f"{name}.".startswith(own)] == []


@pytest.mark.parametrize("package", ALONE)
def test_what_runs_in_other_programs_imports_nothing_else_of_ours(package: str) -> None:
    imported = {other for name, others in imports().items() if _root(name) == package for other in others}
    assert {_root(other) for other in imported} == {package}


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Packages count as what their `__init__` imports, since importing a module runs it."""
    graph = {name: set(imported) for name, imported in imports().items()}
    for name, imported in graph.items():
        for other in tuple(imported):
            parents = (other.rsplit(".", level)[0] for level in range(1, other.count(".") + 1))
            imported |= {parent for parent in parents if parent in graph and not f"{name}.".startswith(f"{parent}.")}
    assert _circles(graph) == set()


def test_no_folders_import_each_other_in_a_circle() -> None:
    graph: dict[str, set[str]] = {}
    for name, imported in imports().items():
        if not _is_vocabulary(folder(name)):
            others = {folder(other) for other in imported}
            graph.setdefault(folder(name), set()).update(others - {folder(name)})
    assert _circles(graph) == set()


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


def _face(extension: str) -> str:
    """Return the module that an extension names as its face."""
    return next(each.face for each in own_extensions() if each.name == extension).removeprefix(f"{PACKAGE}.")


def _is_top_of_a_root(module: str) -> bool:
    """Such as `plugin.app`, which opens the rooms."""
    return folder(module) in ("plugin", "extensions", "runtimes")


def _is_vocabulary(name: str) -> bool:
    """Whether it is a top that its folders import: of a root, an extension, or the interface with MLServer's names."""
    return "." not in name or (name == room(name) and _root(name) != "plugin")


def _circles(graph: Mapping[str, Set[str]]) -> set[str]:
    """Those that lie on a circle, and what lies between two."""
    left = {name: set(others) for name, others in graph.items()}
    while True:
        imported = set[str]().union(*left.values())
        kept = {name for name, others in left.items() if others & left.keys() and name in imported}
        if len(kept) == len(left):
            return kept
        left = {name: left[name] & kept for name in kept}
