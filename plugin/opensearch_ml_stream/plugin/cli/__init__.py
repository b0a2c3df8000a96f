"""The command line: `opensearch-ml-stream`.

Exit codes: 0 done, 1 the request failed, 2 wrong usage, 3 the server cannot be reached, 130 interrupted.
"""

import inspect
import sys
import traceback
from collections.abc import Callable, Sequence
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

from opensearch_ml_stream.connectors.errors import InvalidRequest, MLStreamError
from opensearch_ml_stream.plugin.cli.command_errors import USAGE, CommandFailed
from opensearch_ml_stream.plugin.cli.options import ModelCommand
from opensearch_ml_stream.plugin.cli.printing import print_note, print_text
from opensearch_ml_stream.plugin.extension import Command, Extension, ServeOption, load

_CLI = "opensearch_ml_stream.plugin.cli."
_SERVE = "serve"

# Extensions add theirs.
_COMMANDS = (
    Command(_SERVE, f"{_CLI}serve_commands:serve", "Run the sidecar until SIGTERM or Ctrl-C."),
    Command(
        "demo",
        f"{_CLI}serve_commands:demo",
        "Run the sidecar with a provider that needs no key, make two models, and show a first response.",
    ),
    Command(
        "blueprints", f"{_CLI}blueprint_commands:blueprints_app", "The connector documents that come with the sidecar."
    ),
    Command("models", f"{_CLI}model_commands:models_app", "Models on the sidecar."),
    Command("endpoints", f"{_CLI}endpoint_commands:endpoints_app", "The servers that connectors may call."),
    Command("predict", f"{_CLI}predict_command:predict", "Ask a model.", takes_model_id=True),
    Command(
        "embed",
        f"{_CLI}embed_command:embed",
        "Print the embedding of each text: a JSON array of numbers a line.",
        takes_model_id=True,
    ),
    Command(
        "login",
        f"{_CLI}login_commands:login",
        "Check a user's login, or a key, and remember it for the sidecar's URL.",
    ),
    Command("logout", f"{_CLI}login_commands:logout", "Forget the login that is remembered for a sidecar's URL."),
    Command(
        "settings",
        f"{_CLI}settings_command:settings",
        "List all settings, with the values that the file and the environment give them.",
    ),
    Command(
        "extensions",
        f"{_CLI}extensions_command:extensions",
        "List the extensions that are installed: whether they are on, of which package they are, and what for.",
    ),
    Command(
        "users",
        f"{_CLI}account_commands:users_app",
        "Users of the sidecar's own, with a name and a password.",
    ),
    Command("keys", f"{_CLI}account_commands:keys_app", "Keys for programs, each with its own role."),
)


def main() -> None:
    """Run the console script: errors become one line on stderr and an exit code."""
    if isinstance(sys.stdout, TextIOWrapper):  # an answer goes on where the locale has no emoji
        sys.stdout.reconfigure(errors="replace")
    try:
        get_command(_program())()  # Typer's own call would print the traces of defects, as they are
    except CommandFailed as failure:
        _exit(failure.exit_code, str(failure))
    except MLStreamError as error:
        # What our own code refuses here, before any request: a setting, a blueprint, a missing credential.
        _exit(USAGE, error.reason)
    except Exception:  # noqa: BLE001 - a defect of ours, whose trace may quote what others wrote
        print_note(traceback.format_exc(), end="")
        sys.exit(1)


class _DeclaredCommand(TyperCommand):
    """A command whose code is loaded when it is called.

    Otherwise each command, and a server, would load the code of all others: 20 MiB with the HTTP client and Rich.
    """

    def __init__(self, command: Command) -> None:
        super().__init__(command.name, help=command.help)
        self._command = command

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Load the command, and return a context that calls it."""
        return self._load().make_context(info_name, args, parent, **extra)

    def _load(self) -> Any:
        defined = load(self._command.reference)
        if isinstance(defined, typer.Typer):
            return get_group(defined)
        if self._command.name == _SERVE:
            defined = with_extension_options(defined, _extensions())
        alone = typer.Typer(add_completion=False)
        alone.command(self._command.name, cls=ModelCommand if self._command.takes_model_id else None)(defined)
        return get_command(alone)


class _Program(TyperGroup):
    """The program's commands; extensions are read only if a name is not the core's, or all commands are listed."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands.update({command.name: _DeclaredCommand(command) for command in _COMMANDS})

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, None if there is none of that name."""
        if cmd_name not in self.commands:
            self._add_those_of_extensions()
        return super().get_command(ctx, cmd_name)

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands."""
        self._add_those_of_extensions()
        return super().list_commands(ctx)

    def _add_those_of_extensions(self) -> None:
        self.commands.update({command.name: _DeclaredCommand(command) for command in _extension_commands()})


def _program() -> typer.Typer:
    """Return the program."""
    program = typer.Typer(
        name="opensearch-ml-stream",
        cls=_Program,
        help="Streaming predictions of remote models for any OpenSearch, through the ML Commons API.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
    )
    program.callback()(_options)
    return program


def _extensions() -> Sequence[Extension]:
    """Return the declarations of the extensions that the settings name, or that are ours."""
    extensions = import_module(
        "opensearch_ml_stream.plugin.installed_extensions"
    )  # loaded late: not every command needs it
    named: Sequence[Extension] = extensions.named_extensions(_config_file(sys.argv))
    return named


def _config_file(arguments: Sequence[str]) -> Path | None:
    """Return the settings file of the command line. It may enable extensions, so it is read before the options."""
    for argument, following in zip(arguments, [*arguments[1:], ""], strict=False):
        name, _, value = argument.partition("=")
        if name == "--config" and (value or following):
            return Path(value or following)
    return None


def _extension_commands() -> list[Command]:
    own = {command.name for command in _COMMANDS}
    commands = [command for extension in _extensions() for command in extension.commands]
    if taken := [command.name for command in commands if command.name in own]:
        raise InvalidRequest(f"An extension has a command {taken[0]}, which is one of the program's own")
    return commands


def _exit(code: int, message: str) -> NoReturn:
    print_note(f"opensearch-ml-stream: {message}")
    sys.exit(code)


def _show_version(wanted: bool) -> None:
    if wanted:
        metadata = import_module("importlib.metadata")  # loaded late: it takes as long as typer
        print_text(metadata.version("opensearch-ml-stream"))
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


def with_extension_options(command: Callable[..., None], extensions: Sequence[Extension]) -> Callable[..., None]:
    """Return the command with the options of extensions added.

    Their values reach the command as `extension_options`, by the full name of the setting. InvalidRequest if the
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
