"""The command line: `opensearch-ml-stream`.

Exit codes: 0 done, 1 the request failed, 2 wrong usage, 3 the server cannot be reached, 130 interrupted.
"""

import sys
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from typing import Annotated, NoReturn

import typer

from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.plugin.cli.command_errors import USAGE, CommandFailed
from opensearch_ml_stream.plugin.cli.options import ModelCommand
from opensearch_ml_stream.plugin.extension import Command, load
from opensearch_ml_stream.plugin.installed_extensions import named_extensions

_CLI = "opensearch_ml_stream.plugin.cli."

# Those of extensions come beside them.
_COMMANDS = (
    Command("serve", f"{_CLI}running.serve_commands:serve_with_extensions"),
    Command("demo", f"{_CLI}running.serve_commands:demo"),
    Command("blueprints", f"{_CLI}blueprint_commands:blueprints_app"),
    Command("models", f"{_CLI}model_commands:models_app"),
    Command("endpoints", f"{_CLI}endpoint_commands:endpoints_app"),
    Command("predict", f"{_CLI}predict_command:predict", takes_model_id=True),
    Command("login", f"{_CLI}login_commands:login"),
    Command("logout", f"{_CLI}login_commands:logout"),
    Command("settings", f"{_CLI}settings_command:settings"),
    Command("users", f"{_CLI}accounts.user_commands:users_app"),
    Command("keys", f"{_CLI}accounts.key_commands:keys_app"),
)


def main() -> None:
    """Run the console script: errors become one line on stderr and an exit code.

    Only the code of the command that is called is loaded: the server's memory would hold that of all others, with an
    HTTP client and what draws tables, which takes 20 MiB.
    """
    try:
        _program(_called(sys.argv[1:2]))()
    except CommandFailed as failure:
        _exit(failure.exit_code, str(failure))
    except MLStreamError as error:
        # What our own code refuses here, before any request: a setting, a blueprint, a missing credential.
        _exit(USAGE, error.reason)


def _called(name: Sequence[str]) -> Sequence[Command]:
    """Return the command of that name, or all of them."""
    if own := [command for command in _COMMANDS if [command.name] == name]:
        return own
    commands = [*_COMMANDS, *(command for extension in named_extensions() for command in extension.commands)]
    return [command for command in commands if [command.name] == name] or commands


def _program(commands: Iterable[Command]) -> typer.Typer:
    """Return the program with these of its commands."""
    program = typer.Typer(
        name="opensearch-ml-stream",
        help="Streaming predictions of remote models for any OpenSearch, through the ML Commons API.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    program.callback()(_options)
    for command in commands:
        defined = load(command.reference)
        if isinstance(defined, typer.Typer):
            program.add_typer(defined, name=command.name)
        else:
            program.command(command.name, cls=ModelCommand if command.takes_model_id else None)(defined)
    return program


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
