"""Gives these modules under MLServer's names where MLServer is not installed, so that its runtimes run unchanged."""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from types import ModuleType

OURS = "opensearch_ml_stream.runtimes.interface"
INSTALL = "pip install 'mlserver>=1.7'"
# By MLServer's name, without `mlserver`; what is not here needs MLServer itself.
_MODULES = {
    "": "",
    ".codecs": ".codecs",
    ".codecs.base": ".codecs.base",
    ".codecs.base64": ".codecs.base64",
    ".codecs.datetime": ".codecs.datetime",
    ".codecs.decorator": ".codecs.decorator",
    ".codecs.errors": ".codecs.errors",
    ".codecs.json": ".codecs.json",
    ".codecs.lists": ".codecs.lists",
    ".codecs.numpy": ".codecs.numpy",
    ".codecs.pandas": ".codecs.pandas",
    ".codecs.string": ".codecs.string",
    ".codecs.utils": ".codecs.decoded",
    ".context": ".context",
    ".errors": ".errors",
    ".handlers": ".handlers",
    ".handlers.custom": ".handlers.custom",
    ".logging": ".logging",
    ".metrics": ".metrics",
    ".model": ".model",
    ".settings": ".settings",
    ".types": ".types",
    ".types.base": ".types.base",
    ".types.dataplane": ".types.dataplane",
    ".types.model_repository": ".types.model_repository",
    ".utils": ".model_files",
    ".version": ".settings",
}


class _Loader(importlib.abc.Loader):
    """Gives a module that is there already, as it is."""

    def __init__(self, name: str) -> None:
        self._name = name

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = importlib.import_module(self._name)
        self._own_spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._own_spec  # the import has put its own there


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        package, _, _ = fullname.partition(".")
        if package != "mlserver":
            return None
        ours = _MODULES.get(fullname.removeprefix("mlserver"))
        if ours is None:
            raise ModuleNotFoundError(f"{fullname} needs MLServer itself: {INSTALL}", name=fullname)
        return importlib.machinery.ModuleSpec(fullname, _Loader(OURS + ours))


def install_mlserver_alias() -> bool:
    """Give these modules to whoever imports `mlserver`, unless that is installed; tell whether it is so.

    For the process of a model only: it changes what the whole interpreter imports.
    """
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return True
    if importlib.util.find_spec("mlserver") is not None:
        return False
    sys.meta_path.insert(0, _Finder())
    return True
