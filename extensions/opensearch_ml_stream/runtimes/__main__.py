"""The process of a model, started by path: `interpreter .../runtimes/__main__.py NAME FD`.

NAME shows whose process it is in a process list; FD is a socket to the keeper (`host/keeper_socket.py`). The
interpreter need not have this package installed: what lies beside this file is made importable, and nothing else of the
distribution.
"""

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import cast


def _make_importable() -> None:
    """Make this folder `opensearch_ml_stream.runtimes`, and its files no top-level modules.

    Python put the folder first on its path, where `huggingface.py` would hide a library.
    """
    here = Path(__file__).resolve().parent
    if sys.path and Path(sys.path[0]).resolve() == here:
        del sys.path[0]
    package = ModuleType("opensearch_ml_stream")
    package.__path__ = [str(here.parent)]
    sys.modules[package.__name__] = package


if __name__ in ("__main__", "__mp_main__"):  # the latter in processes that the model's multiprocessing spawns
    _make_importable()
    import_module("opensearch_ml_stream.runtimes.interface.alias").install_mlserver_alias()

if __name__ == "__main__":
    sys.exit(cast(int, import_module("opensearch_ml_stream.runtimes.host.process").main(sys.argv[1:])))
