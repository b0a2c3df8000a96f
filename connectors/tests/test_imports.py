"""`connectors` is pure: what it imports opens no socket, reads no clock and logs nothing. Read from the source."""

import ast
import sys
from pathlib import Path

_ROOM = Path(__file__).parents[1] / "opensearch_ml_stream"
_FILES = sorted(_ROOM.rglob("*.py"))
_PACKAGE = "opensearch_ml_stream.connectors"
_THIRD_PARTY = {"jsonpath", "msgspec", "orjson", "re2"}
_IMPURE = {
    "asyncio", "concurrent", "ftplib", "glob", "http", "imaplib", "io", "logging", "multiprocessing", "os", "pathlib",
    "poplib", "random", "sched", "secrets", "select", "selectors", "shutil", "signal", "smtplib", "socket",
    "socketserver", "sqlite3", "ssl", "subprocess", "tempfile", "threading", "time", "uuid", "xmlrpc",
}  # fmt: skip


def _trees() -> list[tuple[str, ast.Module]]:
    return [(str(file.relative_to(_ROOM)), ast.parse(file.read_text("utf-8"))) for file in _FILES]


def _imports(tree: ast.AST) -> list[tuple[str, int]]:
    imports: list[tuple[str, int]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imports += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            imports.append((node.module or "", node.lineno))
    return imports


def _allowed(module: str) -> bool:
    top = module.partition(".")[0]
    if top == "opensearch_ml_stream":
        return module == _PACKAGE or module.startswith(f"{_PACKAGE}.")
    if module == "urllib.request":
        return False
    return top in _THIRD_PARTY or (top in sys.stdlib_module_names and top not in _IMPURE)


def test_no_module_imports_what_touches_the_world() -> None:
    found = [(file, line, module) for file, tree in _trees() for module, line in _imports(tree) if not _allowed(module)]
    assert found == []


def test_no_module_asks_the_clock_or_imports_inside_a_function() -> None:
    for file, tree in _trees():
        nodes = list(ast.walk(tree))
        functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
        clocks = [node for node in nodes if isinstance(node, ast.Attribute) and node.attr in ("now", "utcnow", "today")]
        assert [(file, node.lineno) for node in clocks] == []
        assert [(file, function.name) for function in functions if _imports(function)] == []


def test_the_test_sees_what_it_forbids() -> None:
    tree = ast.parse("import socket\nfrom opensearch_ml_stream.plugin import app\nfrom orjson import loads\n")
    assert [module for module, _ in _imports(tree) if not _allowed(module)] == ["socket", "opensearch_ml_stream.plugin"]
    assert len(_FILES) > 20
