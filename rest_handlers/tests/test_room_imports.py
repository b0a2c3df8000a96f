"""`rest_handlers` knows `connectors`, Starlette, sse-starlette, Jinja, orjson, PyYAML; no server, store or socket."""

import ast
import sys
from pathlib import Path

_ROOM = Path(__file__).parents[1] / "opensearch_ml_stream"
_FILES = sorted(_ROOM.rglob("*.py"))
_OURS = ("opensearch_ml_stream.connectors.", "opensearch_ml_stream.rest_handlers.")
_THIRD_PARTY = {"jinja2", "markupsafe", "orjson", "sse_starlette", "starlette", "yaml"}
_IMPURE = {"http", "logging", "multiprocessing", "os", "pathlib", "socket", "sqlite3", "ssl", "subprocess", "threading"}


def _imports(tree: ast.AST) -> list[str]:
    modules: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            modules.append(node.module or "")
    return modules


def _is_allowed(module: str) -> bool:
    top = module.partition(".")[0]
    if top == "opensearch_ml_stream":
        return f"{module}.".startswith(_OURS)
    return top in _THIRD_PARTY or (top in sys.stdlib_module_names and top not in _IMPURE)


def test_a_module_imports_only_what_is_to_its_right() -> None:
    for file in _FILES:
        tree = ast.parse(file.read_text("utf-8"))
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        assert [(file, module) for module in _imports(tree) if not _is_allowed(module)] == []
        assert [(file, function.name) for function in functions if _imports(function)] == []


def test_the_test_sees_what_it_forbids() -> None:
    tree = ast.parse("import socket\nfrom opensearch_ml_stream.plugin import app\nfrom starlette import routing\n")
    assert [module for module in _imports(tree) if not _is_allowed(module)] == ["socket", "opensearch_ml_stream.plugin"]
    assert len(_FILES) > 15
