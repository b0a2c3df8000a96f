"""The command line: `opensearch-ml-stream`.

Exit codes: 0 done, 1 the request failed, 2 wrong usage, 3 the server cannot be reached, 130 interrupted.
"""

import sys
from collections.abc import Iterable
from importlib import import_module
from importlib.metadata import version
from typing import Annotated, NoReturn

import typer

from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.plugin.cli.command_errors import USAGE, CommandFailed
from opensearch_ml_stream.plugin.cli.options import ModelCommand

# Where each command is defined, as `module:name`; a name with `_app` at its end has commands of its own.
_COMMANDS = {
    "serve": "plugin.cli.running.serve_commands:serve",
    "demo": "plugin.cli.running.serve_commands:demo",
    "blueprints": "plugin.cli.blueprint_commands:blueprints_app",
    "models": "plugin.cli.model_commands:models_app",
    "endpoints": "plugin.cli.endpoint_commands:endpoints_app",
    "predict": "plugin.cli.predict_command:predict",
    "doctor": "extensions.doctor.cli.doctor_command:doctor",
    "record": "extensions.doctor.cli.recording_commands:record",
    "replay": "extensions.doctor.cli.recording_commands:replay",
    "login": "plugin.cli.login_commands:login",
    "logout": "plugin.cli.login_commands:logout",
    "settings": "plugin.cli.settings_command:settings",
    "users": "plugin.cli.accounts.user_commands:users_app",
    "keys": "plugin.cli.accounts.key_commands:keys_app",
}
_OF_A_MODEL = frozenset({"predict", "doctor", "record"})  # those take ids of models, which may begin with a dash


def main() -> None:
    """Run the console script: errors become one line on stderr and an exit code.

    Only the code of the command that is called is loaded: the server's memory would hold that of all others, with an
    HTTP client and what draws tables, which takes 20 MiB.
    """
    called = sys.argv[1:2]
    try:
        _program(called if called and called[0] in _COMMANDS else _COMMANDS)()
    except CommandFailed as failure:
        _exit(failure.exit_code, str(failure))
    except MLStreamError as error:
        # What our own code refuses here, before any request: a setting, a blueprint, a missing credential.
        _exit(USAGE, error.reason)


def _program(commands: Iterable[str]) -> typer.Typer:
    """Return the program with these of its commands."""
    program = typer.Typer(
        name="opensearch-ml-stream",
        help="Streaming predictions of remote models for any OpenSearch, through the ML Commons API.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    program.callback()(_options)
    for name in commands:
        module, _, defined = _COMMANDS[name].partition(":")
        command = getattr(import_module(f"opensearch_ml_stream.{module}"), defined)
        if defined.endswith("_app"):
            program.add_typer(command, name=name)
        else:
            program.command(name, cls=ModelCommand if name in _OF_A_MODEL else None)(command)
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
