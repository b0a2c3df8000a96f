"""The demo's models: created from shipped blueprints at the first run, pointed at the provider at each later one."""

from dataclasses import dataclass
from typing import Any

from opensearch_ml_stream.client.blueprints import connector_body, find_blueprint, model_body
from opensearch_ml_stream.plugin.cli.blueprint_commands import blueprint_errors
from opensearch_ml_stream.plugin.cli.sidecar_api import SidecarAPI

BLUEPRINTS = ("openai-chat", "anthropic-messages")


@dataclass(frozen=True, slots=True)
class DemoModel:
    """A model of the demo that the store holds; `endpoint` is its connector's."""

    id: str
    connector_id: str
    endpoint: str


def find_models(api: SidecarAPI) -> dict[str, DemoModel]:
    """Return the demo's models that exist already, by blueprint."""
    models = {}
    for blueprint in BLUEPRINTS:
        hits = api.search("models", {"term": {"name.keyword": _model_name(blueprint)}})
        if hits:
            connector_id = hits[0]["_source"]["connector_id"]
            connector = api.call("GET", f"/connectors/{connector_id}")
            models[blueprint] = DemoModel(hits[0]["_id"], connector_id, connector["parameters"]["endpoint"])
    return models


def set_up_models(api: SidecarAPI, existing: dict[str, DemoModel], provider_url: str) -> dict[str, str]:
    """Create the models that are missing and point the others at the provider; return all ids by blueprint."""
    ids = {}
    for blueprint in BLUEPRINTS:
        model = existing.get(blueprint)
        if model is None:
            ids[blueprint] = _create(api, blueprint, provider_url)
            continue
        ids[blueprint] = model.id
        if model.endpoint != provider_url:
            _point_at(api, model, provider_url)
    return ids


def _create(api: SidecarAPI, name: str, provider_url: str) -> str:
    with blueprint_errors():
        blueprint = find_blueprint(name)
    credential = dict.fromkeys(blueprint.credential, "demo")
    body = connector_body(blueprint, {"endpoint": provider_url}, credential, _model_name(name))
    connector_id = api.call("POST", "/connectors/_create", body)["connector_id"]
    model: dict[str, Any] = model_body(blueprint, connector_id, _model_name(name))
    return str(api.call("POST", "/models/_register", model)["model_id"])


def _point_at(api: SidecarAPI, model: DemoModel, provider_url: str) -> None:
    # A connector in use cannot be changed; the next prediction deploys the model again.
    api.call("POST", f"/models/{model.id}/_undeploy")
    api.call("PUT", f"/connectors/{model.connector_id}", {"parameters": {"endpoint": provider_url}})


def _model_name(blueprint: str) -> str:
    return f"Demo of {blueprint}"
