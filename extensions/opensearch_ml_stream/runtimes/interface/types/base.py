"""The base of all types: records of named fields, made with keyword arguments and checked when they are made.

A field that was not given is not in the instance's dictionary; its default is the class's attribute. So what a
response leaves out is also left out of its JSON, at no cost.
"""

import copy
import os
import typing
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple, TypeVar

from opensearch_ml_stream.runtimes.interface import json_bytes
from opensearch_ml_stream.runtimes.interface.types.validation import (
    Coerce,
    Problem,
    ValidationError,
    coercion_of,
    inside,
    passing,
    wrong,
)

Self = TypeVar("Self", bound="BaseModel")
Values = dict[str, Any]  # the class below has a method of that name


class Field(NamedTuple):
    """A field of a type: `alias` is its name outside, `default` what it holds where nothing is given."""

    annotation: Any
    coerce: Coerce
    required: bool
    default: Any
    alias: str

    def is_required(self) -> bool:
        """Whether the field must be given."""
        return self.required


class Dumping(NamedTuple):
    """How a record becomes a dictionary."""

    exclude_unset: bool = False
    exclude_none: bool = False
    exclude_defaults: bool = False
    by_alias: bool = False
    json: bool = False


class BaseModel:
    """A record whose fields are its class's annotations.

    Fields that it does not have are dropped, or kept where the class is made with `extra=True`. Equal records are of
    one type and hold equal values.
    """

    model_fields: ClassVar[dict[str, Field]] = {}
    _aliases: ClassVar[dict[str, str]] = {}  # by the field's name, where another stands outside
    _coercions: ClassVar[dict[str, tuple[Any, Coerce]]] = {}  # the type of which values pass as they are, if any
    _required: ClassVar[tuple[str, ...]] = ()
    keeps_others: ClassVar[bool] = False

    def __init_subclass__(cls, extra: bool | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if extra is not None:
            cls.keeps_others = extra
        fields: dict[str, Field] = {}
        for name, hint in typing.get_type_hints(cls, include_extras=True).items():
            if not name.startswith("_") and typing.get_origin(hint) is not ClassVar:
                default = getattr(cls, name, ...)
                alias = cls._aliases.get(name, name)
                fields[name] = Field(hint, coercion_of(hint), default is ..., default, alias)
        cls.model_fields = fields
        cls._coercions = {name: (passing(field.annotation), field.coerce) for name, field in fields.items()}
        cls._required = tuple(name for name, field in fields.items() if field.required)

    def __init__(self, /, **values: Any) -> None:
        cls, own = type(self), self.__dict__
        coercions = cls._coercions
        try:
            for name, value in values.items():
                if name in coercions:
                    exact, coerce = coercions[name]
                    own[name] = value if type(value) is exact else coerce(value)
                elif cls.keeps_others:
                    own[name] = value
        except ValidationError:
            raise ValidationError(cls._problems(values), cls.__name__) from None
        for name in cls._required:
            if name not in own:
                raise ValidationError(cls._problems(values), cls.__name__)

    @classmethod
    def _problems(cls, values: Values) -> list[Problem]:
        """List all that is wrong with values, in the order of the fields."""
        problems: list[Problem] = []
        for name, field in cls.model_fields.items():
            if name in values:
                try:
                    field.coerce(values[name])
                except ValidationError as error:
                    problems += inside(field.alias, error)
            elif field.required:
                problems.append(Problem((field.alias,), "missing", "Field required", values))
        return problems

    def __setattr__(self, name: str, value: Any) -> None:
        cls = type(self)
        if not (name in cls.model_fields or cls.keeps_others or name.startswith("_")):
            own = getattr(cls, name, None)
            if not isinstance(own, property) or own.fset is None:
                raise ValueError(f'"{cls.__name__}" object has no field "{name}"')
        object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BaseModel):
            return NotImplemented
        return type(self) is type(other) and list(BaseModel.__iter__(self)) == list(BaseModel.__iter__(other))

    __hash__ = None  # type: ignore[assignment]  # it can change

    def __iter__(self) -> Iterator[Any]:
        """Yield each field's name and value, then those that are no fields."""
        own = self.__dict__
        for name, field in type(self).model_fields.items():
            yield name, own.get(name, field.default)
        if type(self).keeps_others:
            yield from _extras(self).items()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({_shown(self, ', ')})"

    def __str__(self) -> str:
        return _shown(self, " ")

    def _names_given(self) -> Iterable[str]:
        """Give the names of all that was given or assigned."""
        return self.__dict__

    @property
    def model_fields_set(self) -> set[str]:
        """The names of the fields that were given or assigned."""
        cls = type(self)
        return {name for name in cls._names_given(self) if name in cls.model_fields or cls.keeps_others}

    @property
    def model_extra(self) -> Values | None:
        """What was given beside the fields; None where the type keeps no such values."""
        return _extras(self) if type(self).keeps_others else None

    def dump_as(self, how: Dumping) -> Any:
        """Make what stands for the record in a dictionary."""
        cls = type(self)
        given = cls._names_given(self) if how.exclude_unset else ()
        result: dict[str, Any] = {}
        for name, value in BaseModel.__iter__(self):
            field = cls.model_fields.get(name)
            if field is not None:
                if (how.exclude_unset and name not in given) or (how.exclude_defaults and value == field.default):
                    continue
                name = field.alias if how.by_alias else name
            if value is not None or not how.exclude_none:
                result[name] = dumped_value(value, how)
        return result

    def model_dump(
        self,
        exclude_unset: bool = True,
        exclude_none: bool = True,
        *,
        mode: str = "python",
        include: Iterable[str] | None = None,
        exclude: Iterable[str] | None = None,
        by_alias: bool | None = None,
        exclude_defaults: bool = False,
        **_: Any,
    ) -> Any:
        """Make a dictionary; mode "json" makes one of JSON's types. `include` and `exclude` name fields."""
        how = Dumping(exclude_unset, exclude_none, exclude_defaults, bool(by_alias), mode == "json")
        return type(self).dump_as(self if include is exclude is None else _chosen(self, include, exclude), how)

    def model_dump_json(
        self, exclude_unset: bool = True, exclude_none: bool = True, *, indent: int | None = None, **kwargs: Any
    ) -> str:
        """Make JSON, compact unless `indent` says otherwise."""
        dumped = BaseModel.model_dump(self, exclude_unset, exclude_none, mode="json", **kwargs)
        return json_bytes.dumps(dumped).decode() if indent is None else json_bytes.indented(dumped, indent)

    def dict(self, *, exclude_unset: bool = False, exclude_none: bool = False, **kwargs: Any) -> Any:
        """Make a dictionary of all fields."""
        return BaseModel.model_dump(self, exclude_unset, exclude_none, **kwargs)

    def json(self, *, exclude_unset: bool = False, exclude_none: bool = False, **kwargs: Any) -> str:
        """Make JSON of all fields."""
        return BaseModel.model_dump_json(self, exclude_unset, exclude_none, **kwargs)

    def model_copy(self: Self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Copy the record, with other values for the fields of `update`, which are not checked."""
        copied = copy.deepcopy(self) if deep else copy.copy(self)
        copied.__dict__.update(update or {})
        return copied

    copy = model_copy

    @classmethod
    def model_construct(cls: type[Self], _fields_set: object = None, **values: Any) -> Self:
        """Make a record of values that are not checked."""
        made = cls.__new__(cls)
        made.__dict__.update(values)
        return made

    @classmethod
    def model_validate(cls: type[Self], obj: Any, **_: Any) -> Self:
        """Make a record of a mapping; ValidationError where it does not fit."""
        if isinstance(obj, cls):
            return obj
        if not isinstance(obj, Mapping):
            message = f"Input should be a valid dictionary or instance of {cls.__name__}"
            raise ValidationError(wrong("model_type", message, obj).problems, cls.__name__)
        return cls(**obj)

    @classmethod
    def model_validate_json(cls: type[Self], json_data: str | bytes, **_: Any) -> Self:
        """Make a record of JSON; ValidationError where it is none, or does not fit."""
        try:
            decoded = json_bytes.loads(json_data)
        except ValueError as error:
            raise ValidationError(
                wrong("json_invalid", f"Invalid JSON: {error}", json_data).problems, cls.__name__
            ) from None
        return cls.model_validate(decoded)

    @classmethod
    def parse_obj(cls: type[Self], obj: Any) -> Self:
        """Make a record of a mapping."""
        return cls.model_validate(obj)

    @classmethod
    def parse_raw(cls: type[Self], b: str | bytes, **_: Any) -> Self:
        """Make a record of JSON."""
        return cls.model_validate_json(b)

    @classmethod
    def parse_file(cls: type[Self], path: str | os.PathLike[str]) -> Self:
        """Make a record of a file of JSON."""
        with open(path, "rb") as file:
            return cls.model_validate_json(file.read())


def present(record: BaseModel) -> Values:
    """Give the values that a record has, without None, fields first; what lies inside of them is as it is."""
    cls, own = type(record), record.__dict__
    fields = cls.model_fields
    result: Values = {}
    for name in fields:
        value = own.get(name)
        if value is not None:
            result[name] = value
    if cls.keeps_others and len(own) > len(result):
        result.update({name: value for name, value in own.items() if name not in fields and value is not None})
    return result


def dumped_value(value: Any, how: Dumping) -> Any:
    """Make what stands for any value in a dictionary."""
    if isinstance(value, str | int | float) or value is None:
        return value
    if isinstance(value, BaseModel):
        return type(value).dump_as(value, how)
    if isinstance(value, dict):
        return {key: dumped_value(member, how) for key, member in value.items()}
    if isinstance(value, list):
        return [dumped_value(member, how) for member in value]
    if isinstance(value, tuple):
        members = [dumped_value(member, how) for member in value]
        return members if how.json else tuple(members)
    return dumped_value(json_bytes.plain(value), how) if how.json else value


def _extras(record: BaseModel) -> Values:
    fields = type(record).model_fields
    return {name: value for name, value in record.__dict__.items() if name not in fields}


def _shown(record: BaseModel, separator: str) -> str:
    return separator.join(f"{name}={value!r}" for name, value in BaseModel.__iter__(record))


def _chosen(record: Self, include: Iterable[str] | None, exclude: Iterable[str] | None) -> Self:
    """Copy a record without the values that are not asked for."""
    chosen = copy.copy(record)
    for name in record.__dict__:
        if (include is not None and name not in include) or (exclude is not None and name in exclude):
            del chosen.__dict__[name]
    return chosen
