"""What `doctor` and `record` diagnose: a model of a sidecar, or a connector that a file holds."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import orjson
import typer

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.extensions.doctor.diagnosis.report import Report, read_report
from opensearch_ml_stream.plugin.cli.command_errors import CommandFailed, WrongUsage
from opensearch_ml_stream.plugin.cli.options import read_pairs
from opensearch_ml_stream.plugin.cli.printing import waiting
from opensearch_ml_stream.plugin.cli.sidecar_api import open_api
from opensearch_ml_stream.plugin.cli.sidecar_options import SidecarOptions
from opensearch_ml_stream.plugin.installed_extensions import load_installed_settings

QUESTION = "Count from one to twenty, in words."
MAX_FILE_BYTES = 1024 * 1024

Text = Annotated[
    str | None,
    typer.Argument(metavar="TEXT", help="What to ask: the parameter that the model's connector has for a text."),
]
ConnectorFile = Annotated[
    Path | None,
    typer.Option("--connector", metavar="FILE", help="A connector's JSON, diagnosed here, without a sidecar."),
]
Parameters = Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the call.")]


@dataclass(frozen=True, slots=True)
class DiagnosisTarget:
    """A model's id, or a connector as `connectors/_create` takes it, and the parameters of the call."""

    model_id: str | None
    connector: Mapping[str, Any] | None
    parameters: Mapping[str, str]


def read_target(
    words: tuple[str | None, str | None], connector: Path | None, pairs: list[str] | None
) -> DiagnosisTarget:
    """Return what the arguments say: a model's id and a text, or with a connector's file a text alone.

    Raises:
        WrongUsage: If both or neither are named, or the file cannot be used.
    """
    first, second = words
    if connector is None:
        if first is None:
            raise WrongUsage("Name the id of a model, as `models list` shows it, or a file with --connector")
        model_id, text = first, second
    elif second is not None:
        raise WrongUsage("With --connector only one word may follow, the text to ask: leave out the id of a model")
    else:
        model_id, text = None, first
    given = read_pairs("--set", pairs)
    parameters = {"inputs": QUESTION if text is None else text, **given}
    return DiagnosisTarget(model_id, None if connector is None else _read_file(connector), parameters)


def diagnose(target: DiagnosisTarget, sidecar: SidecarOptions, config: Path | None, *, record: bool) -> dict[str, Any]:
    """Return the diagnosis, as the route sends it: in the sidecar, or of a connector in this process.

    Raises:
        CommandFailed: If the sidecar cannot be asked, or refuses.
    """
    if target.connector is not None:
        # Loaded here: it loads the metrics library, which reads its folder from the environment at import.
        connector_file = import_module("opensearch_ml_stream.extensions.doctor.diagnosis.connector_file")
        settings = load_installed_settings(config)
        diagnosing = connector_file.diagnose_connector(target.connector, target.parameters, settings, record=record)
        with waiting("calling the provider"):
            diagnosis: dict[str, Any] = asyncio.run(diagnosing).to_json()
        return diagnosis
    path = f"/models/{quote(target.model_id or '', safe='')}/_diagnose"
    with open_api(sidecar) as api:
        return api.call("POST", path, {"parameters": dict(target.parameters), "record": record})


def report_of(diagnosis: Mapping[str, Any]) -> Report:
    """Return the report of a diagnosis. CommandFailed if it is none, as from a sidecar of another version."""
    try:
        return read_report(diagnosis)
    except InvalidRequest as error:
        raise CommandFailed(error.reason) from None


def _read_file(path: Path) -> Mapping[str, Any]:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise WrongUsage(f"--connector: {path} cannot be read ({error.strerror})") from error
    if len(data) > MAX_FILE_BYTES:
        raise WrongUsage(f"--connector: {path} has more than {MAX_FILE_BYTES} bytes")
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise WrongUsage(f"--connector: {path} is not JSON (line {error.lineno}, column {error.colno})") from error
    if not isinstance(document, dict):
        raise WrongUsage(f"--connector: {path} must hold a JSON object, the body of POST connectors/_create")
    return document
