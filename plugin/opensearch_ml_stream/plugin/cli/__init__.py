"""The command line: `opensearch-ml-stream`.

Exit codes: 0 done, 1 the request failed, 2 wrong usage, 3 the server cannot be reached, 130 interrupted.
"""

import sys
from importlib.metadata import version
from typing import Annotated, NoReturn

import typer

from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.plugin.cli.accounts.key_commands import keys_app
from opensearch_ml_stream.plugin.cli.accounts.user_commands import users_app
from opensearch_ml_stream.plugin.cli.blueprint_commands import blueprints_app
from opensearch_ml_stream.plugin.cli.command_errors import USAGE, CommandFailed
from opensearch_ml_stream.plugin.cli.doctor.doctor_command import doctor
from opensearch_ml_stream.plugin.cli.doctor.recording_commands import record, replay
from opensearch_ml_stream.plugin.cli.endpoint_commands import endpoints_app
from opensearch_ml_stream.plugin.cli.login.login_commands import login, logout
from opensearch_ml_stream.plugin.cli.model_commands import models_app
from opensearch_ml_stream.plugin.cli.options import ModelCommand
from opensearch_ml_stream.plugin.cli.predict_command import predict
from opensearch_ml_stream.plugin.cli.running.serve_commands import demo, serve
from opensearch_ml_stream.plugin.cli.settings_command import settings

app = typer.Typer(
    name="opensearch-ml-stream",
    help="Streaming predictions of remote models for any OpenSearch, through the ML Commons API.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(serve)
app.command()(demo)
app.add_typer(blueprints_app, name="blueprints")
app.add_typer(models_app, name="models")
app.add_typer(endpoints_app, name="endpoints")
app.command(cls=ModelCommand)(predict)
app.command(cls=ModelCommand)(doctor)
app.command(cls=ModelCommand)(record)
app.command()(replay)
app.command()(login)
app.command()(logout)
app.command()(settings)
app.add_typer(users_app, name="users")
app.add_typer(keys_app, name="keys")


def main() -> None:
    """Run the console script: errors become one line on stderr and an exit code."""
    try:
        app()
    except CommandFailed as failure:
        _exit(failure.exit_code, str(failure))
    except MLStreamError as error:
        # What our own code refuses here, before any request: a setting, a blueprint, a missing credential.
        _exit(USAGE, error.reason)


def _exit(code: int, message: str) -> NoReturn:
    typer.echo(f"opensearch-ml-stream: {message}", err=True)
    sys.exit(code)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(version("opensearch-ml-stream"))
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass
