"""MLServer's name where MLServer is not installed, in an interpreter that has the standard library alone."""

import subprocess
import sys
from pathlib import Path

import pytest

import opensearch_ml_stream.runtimes.interface

PACKAGE = Path(next(iter(opensearch_ml_stream.runtimes.interface.__path__)))
START = f"""
import importlib, inspect, sys
sys.path.insert(0, {str(PACKAGE.parents[2])!r})
from opensearch_ml_stream.runtimes.interface.alias import install_mlserver_alias
assert install_mlserver_alias() and install_mlserver_alias()
"""


def run(program: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    program = f"import sys; sys.path.append({str(path)!r})\n{program}" if path else program
    return subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, timeout=30)


def outcome(program: str) -> str:
    ended = run(START + program)
    return ended.stdout.strip() or ended.stderr.splitlines()[-1]


def test_a_models_imports_give_these_very_modules() -> None:
    program = """
import mlserver, mlserver.codecs.string, mlserver.utils, mlserver.types.dataplane
from mlserver import MLModel, ModelSettings, Settings, log, register, types
from mlserver.codecs import DecodedParameterName, NumpyCodec, PandasCodec, StringCodec, decode_args
from mlserver.codecs.utils import SingleInputRequestCodec, get_decoded_or_raw
from mlserver.errors import InferenceError, MLServerError
from mlserver.handlers.custom import custom_handler
from mlserver.logging import logger
from mlserver.utils import get_model_uri
from mlserver.version import __version__
ours = "opensearch_ml_stream.runtimes.interface"
for name, module in list(sys.modules.items()):
    if name == "mlserver" or name.startswith("mlserver."):
        assert module is sys.modules[module.__name__] and module.__spec__.name == module.__name__, name
assert mlserver is sys.modules[ours] and mlserver.types is types is sys.modules[ours + ".types"]
assert inspect.getmodule(StringCodec) is mlserver.codecs.string
importlib.reload(mlserver.errors)
print(MLModel.__module__, "numpy" in sys.modules, "pandas" in sys.modules)
"""
    assert outcome(program) == "opensearch_ml_stream.runtimes.interface.model False False"


def test_every_module_of_the_interface_is_found_first_by_its_name_in_mlserver() -> None:
    program = "from opensearch_ml_stream.runtimes.interface import alias\n"
    program += "for name in alias._MODULES: importlib.import_module('mlserver' + name)\nprint('all')"
    assert outcome(program) == "all"


@pytest.mark.parametrize(
    "statement",
    [
        "import mlserver.parallel",
        "from mlserver.grpc import converters",
        "import mlserver.server",
        "from mlserver import MLServer",
        "from mlserver.handlers import DataPlane",
        "from mlserver.types.absent import X",
    ],
)
def test_what_only_mlserver_has_says_how_to_get_it(statement: str) -> None:
    printed = outcome(statement)
    assert "Error: mlserver." in printed
    assert printed.endswith("needs MLServer itself: pip install 'mlserver>=1.7'")


def test_other_names_are_missing_as_ever() -> None:
    assert outcome("import mlserver\nprint(hasattr(mlserver, 'nothing'))") == "False"
    assert "cannot import name 'nothing' from" in outcome("from mlserver import nothing")
    assert outcome("import mlserver_sklearn") == "ModuleNotFoundError: No module named 'mlserver_sklearn'"


def test_mlserver_itself_is_used_where_it_is_installed(tmp_path: Path) -> None:
    (tmp_path / "mlserver").mkdir()
    (tmp_path / "mlserver/__init__.py").write_text("")
    (tmp_path / "mlserver/types.py").write_text("real = True\n")
    program = START.replace("assert install_mlserver_alias() and ", "assert not ")
    program += "from opensearch_ml_stream.runtimes.interface import wire\nprint(wire.load_types().real)"
    assert run(program, tmp_path).stdout == "True\n"


def test_types_are_ours_where_it_is_not_installed() -> None:
    program = "from opensearch_ml_stream.runtimes.interface import wire\nprint(wire.load_types().__name__)"
    assert outcome(program) == "opensearch_ml_stream.runtimes.interface.types"
