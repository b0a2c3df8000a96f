"""The engines' packages: the real ones where they are installed, else the stand-ins; and the models' own interface."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from opensearch_ml_stream.runtimes.interface.alias import install_mlserver_alias
from opensearch_ml_stream.runtimes.shipped_runtimes import SHORT_NAMES

_STAND_INS = str(Path(__file__).parent / "stand_ins")
_RUNTIMES = {path.rpartition(".")[0] for path in SHORT_NAMES.values()} | {"opensearch_ml_stream.runtimes.text_models"}


@pytest.fixture
def engine_packages(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Import what the runtimes import as in the process of a model; afterwards all is as it was."""
    before, finders = dict(sys.modules), sys.meta_path[:]
    monkeypatch.setattr(sys, "path", [*sys.path, _STAND_INS])  # behind the installed packages
    is_ours = install_mlserver_alias()
    yield
    sys.meta_path[:] = finders
    for name in set(sys.modules) - set(before):
        is_stand_in = (getattr(sys.modules[name], "__file__", None) or "").startswith(_STAND_INS)
        is_alias = is_ours and name.partition(".")[0] == "mlserver"
        if is_stand_in or is_alias or name in _RUNTIMES:
            del sys.modules[name]
