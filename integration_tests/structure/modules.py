"""The package's modules and what each imports, read from the source."""

import ast
from functools import cache
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
ROOTS = ("connectors", "rest_handlers", "plugin", "extensions")
PACKAGE = "opensearch_ml_stream"


@cache
def modules() -> dict[str, Path]:
    """Every module by its dotted name below the package, e.g. `connectors.decoding.decoder`."""
    found: dict[str, Path] = {}
    for root in ROOTS:
        base = CHECKOUT / root / PACKAGE
        for file in sorted(base.rglob("*.py")):
            parts = file.relative_to(base).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


@cache
def imports() -> dict[str, frozenset[str]]:
    """The package's own modules that each module imports, wherever in it the import stands."""
    return {name: frozenset(_imported(ast.parse(file.read_text("utf-8")))) for name, file in modules().items()}


def _imported(tree: ast.AST) -> list[str]:
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            found += [_module_of(node.module or "", alias.name) for alias in node.names]
        elif isinstance(node, ast.Import):
            found += [_module_of(alias.name, "") for alias in node.names]
    return [name for name in found if name]


def _module_of(module: str, name: str) -> str:
    """The imported module's name below the package, "" for a module of others."""
    if module.partition(".")[0] != PACKAGE:
        return ""
    module = module.removeprefix(PACKAGE).lstrip(".")
    whole = f"{module}.{name}".strip(".")
    return whole if whole in modules() else module


def folder(module: str) -> str:
    """The folder that a module stands in; a package is its own folder."""
    return module if modules()[module].name == "__init__.py" else module.rpartition(".")[0]


def room(module: str) -> str:
    """The room of a module: a source root or, in `plugin` and `extensions`, a folder of it (`plugin.upstream`)."""
    parts = module.split(".")
    has_rooms = parts[0] in ("plugin", "extensions") or parts[:2] == ["runtimes", "interface"]
    return ".".join(parts[:2]) if has_rooms else parts[0]
