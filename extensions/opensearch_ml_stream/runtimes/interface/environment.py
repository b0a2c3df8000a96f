"""The base of settings: what is not given comes from the environment, then from the defaults."""

import copy
import json
import os
import types
import typing
from collections.abc import Iterable
from typing import Any, ClassVar

from opensearch_ml_stream.runtimes.interface.types.base import BaseModel, Field


def each(default: Any) -> Any:
    """Make a list or a dictionary a field's default, of which each record gets a copy."""
    return default


class BaseSettings(BaseModel):
    """A record whose fields may stand in the environment too, under `environment_prefix` and their name, in any case.

    Lists, dictionaries and records stand there as JSON. Defaults that can change are each record's own.
    """

    __slots__ = ("_defaults",)
    _defaults: frozenset[str]
    environment_prefix: ClassVar[str] = ""

    def __init__(self, /, **values: Any) -> None:
        object.__setattr__(self, "_defaults", frozenset[str]())
        cls = type(self)
        for name, field in cls.model_fields.items():
            if field.alias != name:
                values.pop(name, None)
                if field.alias in values:
                    values[name] = values.pop(field.alias)
        super().__init__(**{**_from_environment(cls, values), **values})
        fields = cls.model_fields.items()
        fresh = {name: field.default for name, field in fields if isinstance(field.default, list | dict)}
        fresh = {name: copy.deepcopy(default) for name, default in fresh.items() if name not in self.__dict__}
        self.__dict__.update(fresh)
        object.__setattr__(self, "_defaults", frozenset(fresh))

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        object.__setattr__(self, "_defaults", self._defaults - {name})

    def _names_given(self) -> Iterable[str]:
        return [name for name in self.__dict__ if name not in self._defaults]

    def dict(
        self, *, by_alias: bool = True, exclude_unset: bool = True, exclude_none: bool = True, **kwargs: Any
    ) -> Any:
        """Make a dictionary of what was given, as a settings file has it."""
        return self.model_dump(exclude_unset, exclude_none, by_alias=by_alias, **kwargs)

    def json(
        self, *, by_alias: bool = True, exclude_unset: bool = True, exclude_none: bool = True, **kwargs: Any
    ) -> str:
        """Make JSON of what was given, as a settings file has it."""
        return self.model_dump_json(exclude_unset, exclude_none, by_alias=by_alias, **kwargs)

    def model_dump(self, exclude_unset: bool = False, exclude_none: bool = False, **kwargs: Any) -> Any:
        """Make a dictionary of all fields."""
        return super().model_dump(exclude_unset, exclude_none, **kwargs)

    def model_dump_json(self, exclude_unset: bool = False, exclude_none: bool = False, **kwargs: Any) -> str:
        """Make JSON of all fields."""
        return super().model_dump_json(exclude_unset, exclude_none, **kwargs)


def _from_environment(cls: type[BaseSettings], given: dict[str, Any]) -> dict[str, Any]:
    prefix = cls.environment_prefix.lower()
    there = {name.lower(): text for name, text in os.environ.items() if name.lower().startswith(prefix)}
    found: dict[str, Any] = {}
    for name, field in cls.model_fields.items():
        text = there.get(prefix + field.alias.lower())
        if text is not None and name not in given:
            found[name] = _value(field, text)
    return found


def _value(field: Field, text: str) -> Any:
    """Read JSON where the field holds more than text or a number; what is none stays text, for the error to show."""
    union = typing.get_origin(field.annotation) in (types.UnionType, typing.Union)
    hints = typing.get_args(field.annotation) if union else (field.annotation,)
    if all(hint in (str, int, float, bool, type(None)) for hint in hints):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text
