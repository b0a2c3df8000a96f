"""The tree stays easy to walk: small folders, one subject a file, no two modules of one name in a room."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from integration_tests.structure.modules import CHECKOUT, PACKAGE, ROOTS, modules

MAX_MODULES = 12  # of a folder, beside its __init__
MAX_LINES = 300
_TREES = (*(f"{root}/{PACKAGE}" for root in ROOTS), *(f"{root}/tests" for root in ROOTS), "integration_tests", "bench")
_WITH_NAMES_OF_MLSERVER = CHECKOUT / "plugin" / PACKAGE / "runtimes" / "interface"


def _files_of(tree: str) -> list[Path]:
    """Without hidden folders: environments that others make beside the code, as the benchmark's peers."""
    files = sorted((CHECKOUT / tree).rglob("*.py"))
    return [file for file in files if not any(part.startswith(".") for part in file.relative_to(CHECKOUT).parts)]


def _files() -> list[Path]:
    return [file for tree in (*_TREES, "examples", "scripts") for file in _files_of(tree)]


_FOLDERS = sorted({file.parent for tree in _TREES for file in _files_of(tree)})


@pytest.mark.parametrize("folder", _FOLDERS, ids=lambda folder: str(folder.relative_to(CHECKOUT)))
def test_a_folder_holds_a_dozen_modules_at_most(folder: Path) -> None:
    names = {file.name for file in folder.glob("*.py")} - {"__init__.py", "__main__.py"}
    assert len(names) <= MAX_MODULES, sorted(names)


@pytest.mark.parametrize("file", _files(), ids=lambda file: str(file.relative_to(CHECKOUT)))
def test_a_file_has_one_subject_and_stays_short(file: Path) -> None:
    assert len(file.read_text("utf-8").splitlines()) <= MAX_LINES


@pytest.mark.parametrize("tree", [*_TREES, "plugin"])
def test_no_two_modules_of_a_room_have_the_same_name(tree: str) -> None:
    files = [file for file in _files_of(tree) if _WITH_NAMES_OF_MLSERVER not in file.parents]
    names = Counter(file.name for file in files if file.name not in ("__init__.py", "__main__.py", "conftest.py"))
    assert [name for name, count in names.items() if count > 1] == []


@pytest.mark.parametrize("root", ROOTS)
def test_the_package_is_a_pure_namespace(root: str) -> None:
    """With an __init__ at its top, editors and type checkers would see one of the three roots only."""
    assert not (CHECKOUT / root / PACKAGE / "__init__.py").exists()


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
                "connectors.syntax.scalars",
            },
        ),
        ("connectors.chunks", set()),
        ("rest_handlers.base_path", set()),
    ],
)
def test_importing_a_small_module_loads_only_what_it_needs(module: str, loads: set[str]) -> None:
    code = f"import sys, {PACKAGE}.{module}; print(*[name for name in sys.modules if name.startswith('{PACKAGE}.')])"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    loaded = {name.removeprefix(f"{PACKAGE}.") for name in printed.split()}
    assert loaded == loads | {module, module.partition(".")[0]}
