"""The description of a route's operations, for the OpenAPI document."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import getdoc
from typing import Any

Schema = Mapping[str, Any]
"""A JSON Schema of draft 2020-12, as OpenAPI 3.1 has them."""

FLAG: Schema = {"type": "boolean"}


@dataclass(frozen=True, slots=True)
class OperationDescription:
    """One method of one path. `parameters` are those of the query; `body` is None where none is read.

    `response` is the schema of a response that is JSON. `is_of_ml_commons` is whether the query parameters of ML
    Commons' routes are read, too, and YAML is taken and given.
    """

    summary: str
    parameters: Mapping[str, Schema] = field(default_factory=dict)
    body: Schema | None = None
    is_body_required: bool = False
    content_types: tuple[str, ...] = ("application/json",)
    response: Schema = field(default_factory=lambda: {"type": "object"})
    is_of_ml_commons: bool = True


def summary_of(handler: Callable[..., object]) -> str:
    """Return the first line of a handler's docstring."""
    return (getdoc(handler) or "").partition("\n")[0]
