"""The command `echo`, which makes the model."""

from typing import Any

import typer

from opensearch_ml_stream.plugin.cli.sidecar_api import open_api
from opensearch_ml_stream.plugin.cli.sidecar_options import SidecarOptions, takes_sidecar


@takes_sidecar
def echo(sidecar: SidecarOptions) -> None:
    """Make a model of it; prints its id."""
    with open_api(sidecar) as api:
        connector_id = api.call("POST", "/connectors/_create", _connector(sidecar.url))["connector_id"]
        model = {"name": "Echo", "function_name": "remote", "connector_id": connector_id}
        typer.echo(api.call("POST", "/models/_register", model)["model_id"])


def _connector(url: str) -> dict[str, Any]:
    """Return a connector whose provider is the sidecar itself."""
    action = {
        "action_type": "predict",
        "method": "POST",
        "url": "${parameters.endpoint}/_plugins/_ml/echo",
        "headers": {"Content-Type": "application/json"},
        "request_body": '{ "prompt": "${parameters.inputs}" }',
    }
    return {
        "name": "Echo",
        "version": "1",
        "protocol": "http",
        "parameters": {"endpoint": url.rstrip("/")},
        "credential": {"key": "none"},  # a connector has one
        "actions": [action],
    }
