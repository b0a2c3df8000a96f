"""The command line: `opensearch-ml-stream`.

Exit codes: 0 done, 1 the request failed, 2 wrong usage, 3 the server cannot be reached, 130 interrupted.
"""

import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from opensearch_ml_stream.connectors.errors import InvalidRequest, MLStreamError
from opensearch_ml_stream.plugin.cli.command_errors import USAGE, CommandFailed
from opensearch_ml_stream.plugin.cli.options import ModelCommand
from opensearch_ml_stream.plugin.cli.serve_options import with_extension_options
from opensearch_ml_stream.plugin.extension import Command, Extension, load
from opensearch_ml_stream.plugin.installed_extensions import named_extensions

_CLI = "opensearch_ml_stream.plugin.cli."
_SERVE = "serve"

# Those of extensions come beside them.
_COMMANDS = (
    Command(_SERVE, f"{_CLI}running.serve_commands:serve"),
    Command("demo", f"{_CLI}running.serve_commands:demo"),
    Command("blueprints", f"{_CLI}blueprint_commands:blueprints_app"),
    Command("models", f"{_CLI}model_commands:models_app"),
    Command("endpoints", f"{_CLI}endpoint_commands:endpoints_app"),
    Command("predict", f"{_CLI}predict_command:predict", takes_model_id=True),
    Command("login", f"{_CLI}login_commands:login"),
    Command("logout", f"{_CLI}login_commands:logout"),
    Command("settings", f"{_CLI}settings_command:settings"),
    Command("extensions", f"{_CLI}extensions_command:extensions"),
    Command("users", f"{_CLI}accounts.user_commands:users_app"),
    Command("keys", f"{_CLI}accounts.key_commands:keys_app"),
)


def main() -> None:
    """Run the console script: errors become one line on stderr and an exit code.

    Only the code of the command that is called is loaded: the server's memory would hold that of all others, with an
    HTTP client and what draws tables, which takes 20 MiB.
    """
    try:
        _program(sys.argv[1:])()
    except CommandFailed as failure:
        _exit(failure.exit_code, str(failure))
    except MLStreamError as error:
        # What our own code refuses here, before any request: a setting, a blueprint, a missing credential.
        _exit(USAGE, error.reason)


def _program(arguments: Sequence[str]) -> typer.Typer:
    """Return the program with the command that is called, or with all of them.

    What extensions add to it is loaded only where it may be asked for.
    """
    program = typer.Typer(
        name="opensearch-ml-stream",
        help="Streaming predictions of remote models for any OpenSearch, through the ML Commons API.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    program.callback()(_options)
    called = arguments[0] if arguments else ""
    commands = [command for command in _COMMANDS if command.name == called]
    extensions: Sequence[Extension] = ()
    if not commands or called == _SERVE:
        extensions = named_extensions(_config_file(arguments))
    if not commands:
        all_commands = [*_COMMANDS, *_commands_of(extensions)]
        commands = [command for command in all_commands if command.name == called] or all_commands
    for command in commands:
        defined = load(command.reference)
        if isinstance(defined, typer.Typer):
            program.add_typer(defined, name=command.name)
            continue
        if command.name == _SERVE:
            defined = with_extension_options(defined, extensions)
        program.command(command.name, cls=ModelCommand if command.takes_model_id else None)(defined)
    return program


def _config_file(arguments: Sequence[str]) -> Path | None:
    """Return the file of settings that the command line names: it may name extensions, before options are known."""
    for argument, following in zip(arguments, [*arguments[1:], ""], strict=False):
        name, _, value = argument.partition("=")
        if name == "--config" and (value or following):
            return Path(value or following)
    return None


def _commands_of(extensions: Sequence[Extension]) -> list[Command]:
    own = {command.name for command in _COMMANDS}
    commands = [command for extension in extensions for command in extension.commands]
    if taken := [command.name for command in commands if command.name in own]:
        raise InvalidRequest(f"An extension has a command {taken[0]}, which is one of the program's own")
    return commands


def _exit(code: int, message: str) -> NoReturn:
    typer.echo(f"opensearch-ml-stream: {message}", err=True)
    sys.exit(code)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(version("opensearch-ml-stream"))
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass
