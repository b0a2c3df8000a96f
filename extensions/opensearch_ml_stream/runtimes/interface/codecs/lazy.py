"""Types of packages that a model may use, without an import of them."""

import importlib
import sys
from typing import Any


class HintOf:
    """The type hint of a codec: a class of a package, known once the model has imported that package."""

    def __init__(self, package: str, name: str) -> None:
        self._package, self._name = package, name

    def __get__(self, instance: object, owner: type[Any]) -> Any:
        return loaded_class(self._package, self._name)


def loaded_class(package: str, name: str) -> Any:
    """Find a class of a package if that is imported, else a class that has no instances."""
    return getattr(sys.modules.get(package), name, _Absent)


def needed(package: str, codec: str) -> Any:
    """Import a package for a codec; ImportError says what lacks it."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        message = f"{codec} needs {package} in the model's interpreter ({error})"
        raise ImportError(message, name=package) from error


class _Absent:
    """The class in place of one whose package is not imported."""
