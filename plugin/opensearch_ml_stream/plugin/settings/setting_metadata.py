"""Setting metadata: name, kind of value, limits and help text of a setting, and whether it can change at run time."""

from dataclasses import dataclass, fields
from typing import Any, Literal

from opensearch_ml_stream.plugin.settings import Settings

Kind = Literal[
    "boolean", "integer", "number", "string", "list", "regex", "regexes", "endpoints", "origins", "hosts", "secret",
    "networks", "header", "permissions",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. `field` is its name in Settings; `minimum` and `maximum` bound numbers, `choices` strings."""

    name: str
    field: str
    kind: Kind
    help: str
    dynamic: bool = False
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()

    @property
    def default(self) -> object:
        """The value where no source sets it."""
        return DEFAULTS[self.field]


DEFAULTS: dict[str, Any] = {field.name: field.default for field in fields(Settings)}
