"""The commands `endpoints list`, `allow` and `remove`: the URLs that connectors may call, on a running sidecar."""

from typing import Annotated

import typer

from opensearch_ml_stream.plugin.cli.command_errors import WrongUsage
from opensearch_ml_stream.plugin.cli.options import Json, command_line
from opensearch_ml_stream.plugin.cli.printing import print_note, print_table, print_text
from opensearch_ml_stream.plugin.cli.sidecar_api import SidecarAPI, open_api
from opensearch_ml_stream.plugin.cli.sidecar_options import SidecarOptions, takes_sidecar
from opensearch_ml_stream.plugin.settings.endpoint_permissions import (
    PRIVATE_ALLOWED,
    EndpointPermissions,
    origin_pattern,
)
from opensearch_ml_stream.plugin.upstream.addresses import has_private_address
from opensearch_ml_stream.plugin.upstream.target import Target, parse_target
from opensearch_ml_stream.plugin.upstream.trusted_endpoints import is_allowed

endpoints_app = typer.Typer(no_args_is_help=True, help="The servers that connectors may call.")

Endpoint = Annotated[str, typer.Argument(metavar="URL", help="Such as http://10.0.0.5:8000; its path does not count.")]


@endpoints_app.command("list")
@takes_sidecar
def list_all(sidecar: SidecarOptions, json: Json = False) -> None:
    """List the patterns of URLs that connectors may call."""
    with open_api(sidecar) as api:
        permissions = _read(api)
    rows = [(pattern, permissions.allows_private(pattern)) for pattern in permissions.patterns]
    print_table(("Pattern", "Private addresses"), rows, json=json)


@endpoints_app.command()
@takes_sidecar
def allow(
    sidecar: SidecarOptions,
    endpoint: Endpoint,
    private: Annotated[
        bool | None,
        typer.Option("--private/--public", help="Whether it has a private address, if that cannot be seen from here."),
    ] = None,
) -> None:
    """Let connectors call a server, at its private address too if it has one."""
    target = _read_target(endpoint)
    needs_private = has_private_address(target.host) if private is None else private
    with open_api(sidecar) as api:
        before = _read(api)
        after = before.with_pattern(_pattern(target), is_private=needs_private)
        if before == after or is_allowed(endpoint, before, needs_private=needs_private):
            print_text(f"{target.origins[0]} is allowed already")
            return
        _write(api, after)
    kind = ", which has a private address" if needs_private else ""
    print_text(f"allowed: {target.origins[0]}{kind}")
    print_note(f"{len(after.patterns)} patterns are trusted now; see {command_line(sidecar.url, 'endpoints', 'list')}")
    if needs_private and not before.private_allowed:
        print_note(f"{PRIVATE_ALLOWED} is true now, for this server alone")


@endpoints_app.command()
@takes_sidecar
def remove(
    sidecar: SidecarOptions,
    endpoint: Annotated[str, typer.Argument(metavar="URL|PATTERN", help="As `allow` took it, or `list` shows it.")],
) -> None:
    """Stop connectors from calling a server."""
    with open_api(sidecar) as api:
        before = _read(api)
        pattern = endpoint if endpoint in before.patterns else _pattern(_read_target(endpoint))
        if pattern not in before.patterns:
            raise WrongUsage(f"no pattern {pattern} is trusted; see {command_line(sidecar.url, 'endpoints', 'list')}")
        after = before.without_pattern(pattern)
        _write(api, after)
    print_text(f"removed: {pattern}")
    if before.private_allowed and not after.private_allowed:
        print_note(f"{PRIVATE_ALLOWED} is false now, as no other server needs it")


def allow_private(api: SidecarAPI, endpoint: str) -> None:
    """Let connectors call a server at its private address, if the settings in force do not."""
    permissions = _read(api)
    if not is_allowed(endpoint, permissions, needs_private=True):
        _write(api, permissions.with_pattern(_pattern(parse_target(endpoint)), is_private=True))


def _read_target(endpoint: str) -> Target:
    if "://" not in endpoint:
        raise WrongUsage("a URL begins with its scheme, such as http://10.0.0.5:8000")
    return parse_target(endpoint)


def _pattern(target: Target) -> str:
    return origin_pattern(target.origins[0])


def _read(api: SidecarAPI) -> EndpointPermissions:
    response = api.call("GET", "/_settings?include_defaults=true&flat_settings=true")
    values = {**response["defaults"], **response["persistent"]}
    return EndpointPermissions.of(values)


def _write(api: SidecarAPI, permissions: EndpointPermissions) -> None:
    api.call("PUT", "/_settings", {"persistent": permissions.settings})
