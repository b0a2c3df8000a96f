"""The options of all commands that call a sidecar: where it is, who calls, and whom to trust."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from opensearch_ml_stream.plugin.cli.options import DEFAULT_URL

_SOURCE = "env:NAME|file:PATH|-"
_PARAMETER = "sidecar"

Url = Annotated[str, typer.Option("--url", envvar="MLSTREAM_URL", help="Where the sidecar is.")]
ApiKey = Annotated[
    str | None,
    typer.Option("--api-key", metavar=_SOURCE, help="A key (else MLSTREAM_API_KEY, else what `login` remembers)."),
]
User = Annotated[
    str | None, typer.Option("--user", metavar="NAME", help="A user (else MLSTREAM_USER with MLSTREAM_PASSWORD).")
]
Password = Annotated[
    str | None, typer.Option("--password", metavar=_SOURCE, help="Its password (else MLSTREAM_PASSWORD, else asked).")
]
CACerts = Annotated[
    Path | None,
    typer.Option(
        "--ca-certs",
        envvar="MLSTREAM_CA_CERTS",
        show_envvar=True,
        help="PEM file of the authority that issued the sidecar's certificate, for an https URL.",
    ),
]
ClientCert = Annotated[
    Path | None,
    typer.Option(
        "--client-cert",
        envvar="MLSTREAM_CLIENT_CERT",
        show_envvar=True,
        help="PEM file of a certificate and its key, if the sidecar asks for one.",
    ),
]


@dataclass(frozen=True, slots=True)
class SidecarOptions:
    """The options' values. `api_key` and `password` name the source of a secret, not the secret."""

    url: Url = DEFAULT_URL
    api_key: ApiKey = None
    user: User = None
    password: Password = None
    ca_certs: CACerts = None
    client_cert: ClientCert = None


def takes_sidecar(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command these options; it gets their values as the one parameter `sidecar`."""
    options = inspect.signature(SidecarOptions).parameters

    def run(**values: Any) -> None:
        sidecar = SidecarOptions(**{name: values.pop(name) for name in options})
        command(**values, sidecar=sidecar)

    signature = inspect.signature(command)
    own = [parameter for name, parameter in signature.parameters.items() if name != _PARAMETER]
    by_name = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in (*own, *options.values())]
    expanded: Any = wraps(command)(run)
    expanded.__signature__ = signature.replace(parameters=by_name)
    return expanded  # type: ignore[no-any-return]
