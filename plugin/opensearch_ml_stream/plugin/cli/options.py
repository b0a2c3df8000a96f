"""Options that several commands share, and the functions that read their values."""

import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from opensearch_ml_stream.plugin.cli.command_errors import WrongUsage
from opensearch_ml_stream.plugin.cli.printing import prompt

_MODEL_ID = re.compile(r"-[A-Za-z0-9_-]{19}")  # as OpenSearch makes ids, one in 64 of them with a dash in front
_DASH = "\0-"

DEFAULT_URL = "http://127.0.0.1:9510"

Config = Annotated[Path | None, typer.Option("--config", help="YAML file of settings.", envvar="MLSTREAM_CONFIG")]
Host = Annotated[str | None, typer.Option("--host", help="Address to listen on (127.0.0.1).")]
Port = Annotated[int | None, typer.Option("--port", help="Port to listen on (9510).")]
GrpcPort = Annotated[int | None, typer.Option("--grpc-port", help="Port to listen on for gRPC (none).")]
Workers = Annotated[int | None, typer.Option("--workers", help="Worker processes (1).")]
LogLevel = Annotated[
    str | None, typer.Option("--log-level", metavar="LEVEL", help="debug, info, warning or error (info).")
]
StoreUrl = Annotated[
    str | None,
    typer.Option(
        "--store",
        help="sqlite:///PATH, or http(s)://user@host:port of an OpenSearch (of several hosts with commas), with "
        "?ca_certs=PATH or ?verify_certs=false behind it; its password: --store-password.",
    ),
]
StorePassword = Annotated[
    str | None,
    typer.Option(
        "--store-password",
        metavar="env:NAME|file:PATH|-",
        help="Password of the store's user: from a variable, a file, or asked for (else MLSTREAM_STORE_PASSWORD).",
    ),
]
InsecureNoAuth = Annotated[
    bool, typer.Option("--insecure-no-auth", help="Let everyone call who reaches the port (setting security: none).")
]


Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


class ModelCommand(TyperCommand):
    """A command whose model id may begin with a dash; other commands would take it for an option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Replace the dash of an id before parsing, and restore it in the parsed values."""
        options = {option for parameter in self.params for option in parameter.opts}
        hidden = [_DASH + arg[1:] if _MODEL_ID.fullmatch(arg) and arg not in options else arg for arg in args]
        rest: list[str] = super().parse_args(ctx, hidden)
        ctx.params.update({name: _with_dash(value) for name, value in ctx.params.items()})
        return rest


def _with_dash(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_dash(each) for each in value]
    return value.replace(_DASH, "-", 1) if isinstance(value, str) else value


def _model_id(value: str) -> str:
    if not value:  # from a shell variable that is not set
        raise typer.BadParameter("it is empty; see the ids with `models list`")
    return value


def _complete_model_id(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    completion = import_module("opensearch_ml_stream.plugin.cli.model_id_completion")  # it calls the sidecar
    completed: list[tuple[str, str]] = completion.complete_model_id(ctx.params, incomplete)
    return completed


ModelId = Annotated[
    str,
    typer.Argument(
        metavar="MODEL_ID",
        help="Id of the model, as `models list` shows it.",
        parser=_model_id,
        autocompletion=_complete_model_id,
    ),
]
ModelName = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="Name or id of the model, as `models list` shows them.",
        parser=_model_id,
        autocompletion=_complete_model_id,
    ),
]
ModelOrText = Annotated[
    str | None,
    typer.Argument(
        metavar="MODEL_ID",
        help="Id of the model; left out with --connector.",
        parser=_model_id,
        autocompletion=_complete_model_id,
    ),
]


def program() -> str:
    """Return this program's name, or its path as it was called where the shell does not find the name."""
    name = Path(sys.argv[0]).name
    return name if shutil.which(name) else sys.argv[0]


def command_line(url: str, *arguments: str) -> str:
    """Return a command of this program for the sidecar at `url`, to be pasted into a shell."""
    elsewhere = () if url.rstrip("/") == DEFAULT_URL else ("--url", url)
    return shlex.join((program(), *arguments, *elsewhere))


def read_pairs(option: str, pairs: Iterable[str] | None) -> dict[str, str]:
    """Parse strings of the form `name=value` to a mapping; the value may hold further `=`.

    Raises:
        WrongUsage: If one has no `=` or no name; names the option.
    """
    values = {}
    for pair in pairs or ():
        name, separator, value = pair.partition("=")
        if not separator or not name:
            raise WrongUsage(f"{option} must be of the form name=value, not {name!r}")
        values[name] = value
    return values


def check_secret_source(option: str, value: str) -> None:
    """Raise WrongUsage for an option whose value is a secret itself, not the source of one."""
    if value != "-" and not value.startswith(("env:", "file:")):
        raise WrongUsage(
            f"{option} must be env:NAME, file:PATH or - (to be asked): all users of this machine can read command lines"
        )


def ask(name: str, *, hidden: bool = True, twice: bool = False) -> str:
    """Prompt and return what is typed, without echo if `hidden`; without a terminal the next line of standard input.

    Raises:
        WrongUsage: If standard input has no line.
    """
    if sys.stdin.isatty():
        return prompt(name, hidden=hidden, twice=twice)
    line = sys.stdin.readline()
    if not line:
        raise WrongUsage(f"{name}: there is no terminal to ask on, and nothing on standard input")
    return line.rstrip("\r\n")


def read_secret(name: str, value: str) -> str:
    """Return a credential's secret: from `env:NAME`, `file:PATH`, asked for with `-`, else the value itself.

    Raises:
        WrongUsage: If the variable is not set, or the file or standard input cannot be read.
    """
    if value == "-":
        return ask(name)
    source, _, location = value.partition(":")
    if source == "env":
        if location not in os.environ:
            raise WrongUsage(f"credential {name}: the environment variable {location} is not set")
        return os.environ[location]
    if source == "file":
        try:
            return Path(location).expanduser().read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise WrongUsage(f"credential {name}: cannot read the file {location} ({type(error).__name__})") from error
    return value
