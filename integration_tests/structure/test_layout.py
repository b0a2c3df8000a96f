"""The tree stays easy to walk: modules are told apart by their names, and small modules load little."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from integration_tests.structure.modules import CHECKOUT, PACKAGE, ROOTS, modules

_EXTENSIONS = f"extensions/{PACKAGE}/extensions"
_TREES = (
    *(f"{root}/{PACKAGE}" for root in ROOTS if root != "extensions"),
    f"extensions/{PACKAGE}/runtimes",
    *(f"{_EXTENSIONS}/{folder.name}" for folder in sorted((CHECKOUT / _EXTENSIONS).iterdir()) if folder.is_dir()),
    *(f"{root}/tests" for root in ROOTS if root != "extensions"),
    "integration_tests",
    "bench",
)
_WITH_NAMES_OF_MLSERVER = CHECKOUT / "extensions" / PACKAGE / "runtimes" / "interface"


def _files_of(tree: str) -> list[Path]:
    """Without hidden folders: environments that others make beside the code, as the benchmark's peers."""
    files = sorted((CHECKOUT / tree).rglob("*.py"))
    return [file for file in files if not any(part.startswith(".") for part in file.relative_to(CHECKOUT).parts)]


def test_no_two_modules_of_a_room_have_the_same_name() -> None:
    for tree in _TREES:
        files = [file for file in _files_of(tree) if _WITH_NAMES_OF_MLSERVER not in file.parents]
        names = Counter(file.name for file in files if file.name not in ("__init__.py", "__main__.py", "conftest.py"))
        assert [(tree, name) for name, count in names.items() if count > 1] == []


def test_no_two_modules_of_the_product_differ_by_an_s() -> None:
    """Who looks for one of `call` and `calls` would open the other."""
    files = [file for file in modules().values() if _WITH_NAMES_OF_MLSERVER not in file.parents]
    names = {file.stem for file in files}
    assert {name for name in names if f"{name}s" in names} == set()


def test_the_package_is_a_pure_namespace() -> None:
    """With an __init__ at its top, editors and type checkers would see one of the roots only."""
    assert [root for root in ROOTS if (CHECKOUT / root / PACKAGE / "__init__.py").exists()] == []


def test_each_installed_package_says_that_it_is_typed() -> None:
    packages = {name.partition(".")[0] for name in modules()}
    assert {name for name in packages if (modules()[name].parent / "py.typed").exists()} == packages


@pytest.mark.parametrize(
    ("module", "loads"),
    [
        (
            "connectors.documents",
            {
                "connectors.client_config",
                "connectors.errors",
                "connectors.syntax",
                "connectors.syntax.jsontext",
            },
        ),
        ("connectors.chunks", {"connectors.event", "connectors.syntax", "connectors.syntax.provider_json"}),
        ("rest_handlers.base_path", set()),
    ],
)
def test_importing_a_small_module_loads_only_what_it_needs(module: str, loads: set[str]) -> None:
    code = f"import sys, {PACKAGE}.{module}; print(*[name for name in sys.modules if name.startswith('{PACKAGE}.')])"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    loaded = {name.removeprefix(f"{PACKAGE}.") for name in printed.split()}
    assert loaded == loads | {module, module.partition(".")[0]}
