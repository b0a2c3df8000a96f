"""Define settings: each is a field of a frozen dataclass, whose metadata has what users see of it.

The configuration file, the environment, `_plugins/_ml/_settings`, the command line's listing and the table in the docs
are all made from the fields.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from functools import partial
from typing import Literal, TypeVar, get_type_hints

from opensearch_ml_stream.connectors.errors import InvalidRequest

Kind = Literal[
    "boolean", "integer", "number", "string", "list", "regex", "regexes", "endpoints", "origins", "hosts", "secret",
    "networks", "header", "permissions",
]  # fmt: skip
_KINDS: Mapping[object, Kind] = {
    bool: "boolean",
    int: "integer",
    int | None: "integer",
    float: "number",
    str: "string",
    tuple[str, ...]: "list",
}

SWITCHES = "opensearch_ml_stream.extensions."  # and the name of an extension
# Settings that there were, and what is done in their place.
REMOVED = {
    "opensearch_ml_stream.upstream": "leave it out. Providers have one client, which also calls them through the HTTP "
    "proxies of HTTP_PROXY, HTTPS_PROXY and NO_PROXY",
}

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. `section` is the class that has it as a field; None for the switch of the extension `field`."""

    name: str
    section: type | None
    field: str
    kind: Kind
    help: str
    default: object
    dynamic: bool = False
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()


def setting(
    default: T,
    help: str,
    *,
    name: str,
    kind: Kind | None = None,
    dynamic: bool = False,
    minimum: float | None = None,
    maximum: float | None = None,
    choices: tuple[str, ...] = (),
) -> T:
    """Define a field of a frozen dataclass as a setting with that full name.

    The kind of its values is that of the field's type, unless one is given. `minimum` and `maximum` bound numbers,
    `choices` strings; a `dynamic` setting can change at run time.
    """
    define = partial(Setting, name=name, help=help, dynamic=dynamic, minimum=minimum, maximum=maximum, choices=choices)
    return field(default=default, metadata={"define": define, "kind": kind})


def settings_of(section: type) -> tuple[Setting, ...]:
    """Return the settings that a dataclass has as fields, in their order. KeyError if a type needs a kind."""
    types = get_type_hints(section)
    return tuple(
        one.metadata["define"](
            section=section,
            field=one.name,
            kind=one.metadata["kind"] or _KINDS[types[one.name]],
            default=one.default,
        )
        for one in fields(section)
        if "define" in one.metadata
    )


def switch_of(extension: str) -> Setting:
    """Return the setting that switches an extension on or off; unset, its declaration decides."""
    text = f"Whether the extension {extension} is on, whatever its own settings say"
    return Setting(SWITCHES + extension, None, extension, "boolean", text, None)


def setting_named(definitions: Mapping[str, Setting], name: str) -> Setting:
    """Return the setting of that full name. InvalidRequest if there is none: with what to do, or the most similar."""
    if name in definitions:
        return definitions[name]
    if name in REMOVED:
        raise InvalidRequest(f"setting [{name}] no longer exists: {REMOVED[name]}")
    similar = get_close_matches(name, definitions, n=1, cutoff=0.5)
    hint = f", did you mean [{similar[0]}]?" if similar else ""
    absent = f" (no package with an extension {name.removeprefix(SWITCHES)} is installed here)"
    raise InvalidRequest(f"setting [{name}] not recognized{absent if name.startswith(SWITCHES) else ''}{hint}")
