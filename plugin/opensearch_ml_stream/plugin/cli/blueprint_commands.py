"""The commands `blueprints list` and `blueprints show`."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from opensearch_ml_stream.client.blueprints import Blueprint, find_blueprint, list_blueprints
from opensearch_ml_stream.client.errors import RequestRefused
from opensearch_ml_stream.plugin.cli.command_errors import WrongUsage
from opensearch_ml_stream.plugin.cli.options import Json, program
from opensearch_ml_stream.plugin.cli.printing import print_json, print_table, print_text

_AWS_VARIABLES = {
    "ACCESS_KEY": "AWS_ACCESS_KEY_ID",
    "SECRET_KEY": "AWS_SECRET_ACCESS_KEY",
    "SESSION_TOKEN": "AWS_SESSION_TOKEN",
}

blueprints_app = typer.Typer(no_args_is_help=True, help="The connector documents that come with the sidecar.")


@blueprints_app.command("list")
def list_all(json: Json = False) -> None:
    """List all blueprints by name."""
    with blueprint_errors():
        rows = [(blueprint.name, blueprint.description) for blueprint in list_blueprints()]
    print_table(("Name", "Description"), rows, json=json)


@blueprints_app.command()
def show(
    name: Annotated[str, typer.Argument(help="Name of a blueprint, or a file.")],
    json: Annotated[bool, typer.Option("--json", help="Only the connector's body, as _create takes it.")] = False,
) -> None:
    """Show what a blueprint holds, what it needs, and the command that makes a model of it."""
    with blueprint_errors():
        blueprint = find_blueprint(name)
    if json:
        print_json(blueprint.connector)
        return
    print_text(f"{blueprint.name}: {blueprint.description}\n")
    defaults = blueprint.connector.get("parameters") or {}
    for key, help_text in blueprint.credential.items():
        print_text(f"  --credential {key}=...  {help_text}")
    for key, help_text in blueprint.parameters.items():
        word = "such as" if key in blueprint.required else "default"
        default = f" ({word} {defaults[key]})" if key in defaults else ""
        print_text(f"  --set {key}=...  {help_text}{default}")
    print_text(f"\n{_create_command(blueprint)}\n")
    print_json(blueprint.connector)


@contextmanager
def blueprint_errors(advice: str = "") -> Iterator[None]:
    """Raise WrongUsage, with the advice, for a blueprint that is missing, or that refuses the given values."""
    try:
        yield
    except RequestRefused as error:
        raise WrongUsage(error.reason + advice) from error


def _create_command(blueprint: Blueprint) -> str:
    required = [word for key in blueprint.required for word in ("--set", f"{key}=...")]
    credentials = [
        word for key in blueprint.credential for word in ("--credential", f"{key}=env:{environment_name(key)}")
    ]
    return shlex.join([program(), "models", "create", "--blueprint", blueprint.name, *required, *credentials])


def environment_name(credential: str) -> str:
    """Return the variable in which a credential is usually kept: OPENAI_API_KEY for `openAI_key`, AWS's own names."""
    name = credential.upper()
    if name in _AWS_VARIABLES:
        return _AWS_VARIABLES[name]
    return name if name.endswith("API_KEY") or not name.endswith("_KEY") else f"{name.removesuffix('KEY')}API_KEY"
