"""The commands `models create`, `list`, `show`, `delete` and `init`."""

from collections.abc import Sequence
from operator import itemgetter
from typing import Annotated
from urllib.parse import quote

import typer

from opensearch_ml_stream.client.blueprints import (
    Blueprint,
    connector_body,
    find_blueprint,
    list_blueprints,
    model_body,
)
from opensearch_ml_stream.plugin.cli.blueprint_commands import blueprint_errors
from opensearch_ml_stream.plugin.cli.command_errors import CommandFailed, RequestFailed
from opensearch_ml_stream.plugin.cli.init_command import init
from opensearch_ml_stream.plugin.cli.options import (
    Json,
    ModelCommand,
    ModelId,
    command_line,
    read_pairs,
    read_secret,
)
from opensearch_ml_stream.plugin.cli.printing import print_json, print_note, print_table, print_text
from opensearch_ml_stream.plugin.cli.sidecar_api import SidecarAPI, open_api
from opensearch_ml_stream.plugin.cli.sidecar_options import SidecarOptions, takes_sidecar

models_app = typer.Typer(no_args_is_help=True, help="Models on the sidecar.")
models_app.command()(init)


def _complete_blueprint(incomplete: str) -> list[tuple[str, str]]:
    with blueprint_errors():
        return [(one.name, one.description) for one in list_blueprints() if one.name.startswith(incomplete)]


@models_app.command()
@takes_sidecar
def create(
    sidecar: SidecarOptions,
    blueprint: Annotated[
        str,
        typer.Option(
            "--blueprint",
            help="Name of a blueprint (see `blueprints list`), or a file.",
            autocompletion=_complete_blueprint,
        ),
    ],
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the connector.")
    ] = None,
    credential: Annotated[
        list[str] | None,
        typer.Option(
            "--credential",
            metavar="KEY=VALUE",
            help="A key: env:NAME reads a variable here, file:PATH a file, - asks for it; else the key itself.",
        ),
    ] = None,
    name: Annotated[str | None, typer.Option("--name", help="Name of the model and its connector.")] = None,
) -> None:
    """Make a connector and a model from a blueprint; prints the model's id."""
    with blueprint_errors():
        source = find_blueprint(blueprint)
    secrets = {key: read_secret(key, value) for key, value in read_pairs("--credential", credential).items()}
    with blueprint_errors(f"; see `opensearch-ml-stream blueprints show {blueprint}`"):
        body = connector_body(source, read_pairs("--set", set_), secrets, name)
    with open_api(sidecar) as api:
        connector = api.call("POST", "/connectors/_create", body)
        connector_id = connector["connector_id"]
        try:
            model_id = api.call("POST", "/models/_register", model_body(source, connector_id, name))["model_id"]
        except CommandFailed:
            api.call("DELETE", f"/connectors/{quote(connector_id, safe='')}")
            raise
    print_text(model_id)
    for warning in connector.get("warnings", ()):
        print_note(f"Warning: {warning}")
    if trial := _trial(source):
        print_note(f"Try it: {command_line(sidecar.url, trial[0], model_id, *trial[1:])}")


@models_app.command("list")
@takes_sidecar
def list_all(sidecar: SidecarOptions, json: Json = False) -> None:
    """List all models: id, name, state."""
    with open_api(sidecar) as api:
        hits = api.search("models", {"match_all": {}})
    rows = [(hit["_id"], hit["_source"].get("name", ""), hit["_source"].get("model_state", "")) for hit in hits]
    print_table(("Id", "Name", "State"), sorted(rows, key=itemgetter(1)), json=json)


@models_app.command(cls=ModelCommand)
@takes_sidecar
def show(
    sidecar: SidecarOptions,
    model_id: ModelId,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, as it does anyway.")] = False,
) -> None:
    """Show a model and its connector, without the credential."""
    with open_api(sidecar) as api:
        model = api.call("GET", _model_path(model_id))
        if "connector_id" in model:
            model["connector"] = api.call("GET", f"/connectors/{quote(model['connector_id'], safe='')}")
    print_json(model)


@models_app.command(cls=ModelCommand)
@takes_sidecar
def delete(
    sidecar: SidecarOptions,
    model_id: ModelId,
    with_connector: Annotated[bool, typer.Option("--with-connector", help="Delete its connector as well.")] = False,
) -> None:
    """Undeploy and delete a model."""
    with open_api(sidecar) as api:
        connector_id = api.call("GET", _model_path(model_id)).get("connector_id")
        api.call("POST", f"{_model_path(model_id)}/_undeploy")
        api.call("DELETE", _model_path(model_id))
        print_text(f"deleted model {model_id}")
        if connector_id is not None:
            _delete_connector(api, connector_id, wanted=with_connector)


def _trial(blueprint: Blueprint) -> Sequence[str]:
    """Return the command, without the model's id, that tries a model of a blueprint; empty for other kinds."""
    pre_process = str(blueprint.connector["actions"][0].get("pre_process_function") or "")
    if pre_process.endswith(".embedding"):
        return "embed", "Hello"
    return () if pre_process else ("predict", "--stream", "Hello")


def _delete_connector(api: SidecarAPI, connector_id: str, *, wanted: bool) -> None:
    if not wanted:
        print_note(f"its connector {connector_id} is kept (--with-connector deletes it, too)")
        return
    try:
        api.call("DELETE", f"/connectors/{quote(connector_id, safe='')}")
    except RequestFailed as error:
        if error.status != 409:
            raise
        print_note(f"its connector {connector_id} is kept: other models use it")
        return
    print_text(f"deleted connector {connector_id}")


def _model_path(model_id: str) -> str:
    return f"/models/{quote(model_id, safe='')}"
