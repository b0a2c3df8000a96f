"""Options that several commands share, and the functions that read their values."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from opensearch_ml_stream.plugin.cli.command_errors import WrongUsage

DEFAULT_URL = "http://127.0.0.1:9510"

Url = Annotated[str, typer.Option("--url", envvar="MLSTREAM_URL", help="Where the sidecar is.")]
User = Annotated[
    str | None,
    typer.Option(
        "--user", envvar="MLSTREAM_USER", show_envvar=True, metavar="NAME:PASSWORD", help="Login, if it asks."
    ),
]
Config = Annotated[Path | None, typer.Option("--config", help="YAML file of settings.", envvar="MLSTREAM_CONFIG")]
Host = Annotated[str | None, typer.Option("--host", help="Address to listen on (127.0.0.1).")]
Port = Annotated[int | None, typer.Option("--port", help="Port to listen on (9510).")]
Workers = Annotated[int | None, typer.Option("--workers", help="Worker processes (1).")]
Store = Annotated[
    str | None,
    typer.Option(
        "--store",
        help="sqlite:///PATH, or http(s)://user@host:port of an OpenSearch; its password: --store-password.",
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


def read_secret(name: str, value: str) -> str:
    """Return a credential's secret: from `env:NAME`, `file:PATH`, a prompt for `-`, else the value itself.

    Raises:
        WrongUsage: If the variable is not set or the file cannot be read.
    """
    if value == "-":
        return str(typer.prompt(name, hide_input=True, err=True))
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
