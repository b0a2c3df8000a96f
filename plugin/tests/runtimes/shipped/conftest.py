"""The engines' packages: the real ones where they are installed, else the stand-ins; and the models' own interface."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

_STAND_INS = str(Path(__file__).parent / "stand_ins")
_ENGINES = ("torch", "transformers", "vllm", "llama_cpp", "words")


@pytest.fixture
def engine_packages(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Import what the runtimes import as in the process of a model; afterwards all is as it was."""
    from opensearch_ml_stream.runtimes.interface.alias import install_mlserver_alias

    before = dict(sys.modules)
    finders = sys.meta_path[:]
    monkeypatch.setattr(sys, "path", [*sys.path, _STAND_INS])  # behind the installed packages
    install_mlserver_alias()
    yield
    sys.meta_path[:] = finders
    for name in set(sys.modules) - set(before):
        path = getattr(sys.modules[name], "__file__", None) or ""
        is_stand_in = path.startswith(_STAND_INS)
        if is_stand_in or (name.partition(".")[0] == "mlserver" and path.startswith(str(Path(__file__).parents[4]))):
            del sys.modules[name]
