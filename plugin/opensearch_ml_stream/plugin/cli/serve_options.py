"""Options of `serve` that extensions declare: each sets a setting."""

import inspect
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.extension import Extension, ServeOption


def with_extension_options(command: Callable[..., None], extensions: Sequence[Extension]) -> Callable[..., None]:
    """Return the command with the options of extensions behind its own.

    It gets what they were given as `extension_options`: values by the full name of their setting. InvalidRequest if the
    command has an option of that name itself.
    """
    options = {_parameter_name(option): option for extension in extensions for option in extension.serve_options}

    def extended(**arguments: Any) -> None:
        given = {option.setting: arguments.pop(name) for name, option in options.items()}
        own = {setting: value for setting, value in given.items() if value not in (None, False)}
        command(**arguments, extension_options=own)

    kept = [one for name, one in inspect.signature(command).parameters.items() if name != "extension_options"]
    if taken := [one.name for one in kept if one.name in options]:
        raise InvalidRequest(f"An extension has an option --{taken[0].replace('_', '-')}, which `serve` has itself")
    parameters = [*kept, *(_parameter(name, option) for name, option in options.items())]
    extended.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # typer reads it
    extended.__annotations__ = {one.name: one.annotation for one in parameters}
    extended.__doc__ = command.__doc__
    return extended


def _parameter_name(option: ServeOption) -> str:
    return option.name.removeprefix("--").replace("-", "_")


def _parameter(name: str, option: ServeOption) -> inspect.Parameter:
    shown = typer.Option(option.name, help=option.help, metavar=option.metavar or None)
    kind: Any = bool if option.is_flag else str | None
    default = False if option.is_flag else None
    return inspect.Parameter(
        name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=Annotated[kind, shown]
    )
