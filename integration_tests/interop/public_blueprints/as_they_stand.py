"""The public pages whose placeholders have spaces, as somebody would paste them who has filled in nothing."""

import json
from dataclasses import dataclass
from typing import Any

from integration_tests.interop.public_blueprints import PUBLIC_BLUEPRINTS
from integration_tests.interop.public_blueprints.body import PublicBlueprint

from tests.providers.recorded_streams import SECRET

_RESOURCE = "<YOUR RESOURCE NAME>"
_DEPLOYMENT = "<YOUR DEPLOYMENT NAME>"


@dataclass(frozen=True, slots=True)
class AsItStands:
    """`body` is a request to connectors/_create, or to models/_register where `inline`; `left` is each placeholder."""

    name: str
    inline: bool
    body: dict[str, Any]
    left: tuple[str, ...]
    url_left: str  # the one that a call meets first


def _azure(blueprint: PublicBlueprint, key: str = "<YOUR API KEY>") -> AsItStands:
    text = "\n".join(line.partition(" //")[0] for line in blueprint.text.splitlines()).replace("{ /*", "{/*")
    body = json.loads(text.replace("/* replace what is yours */", "").replace(SECRET, key))
    version = {"api-version": "<YOUR API VERSION>"} if "judge" not in blueprint.name else {}
    filled = {"endpoint": f"{_RESOURCE}.openai.azure.com/", "deploy-name": _DEPLOYMENT}
    body["parameters"] |= {**filled, **version}
    places = ("parameters.endpoint", "parameters.deploy-name", *(f"parameters.{name}" for name in version))
    return AsItStands(blueprint.name, False, body, (*places, "credential.openAI_key"), _RESOURCE)


def _vertex(blueprint: PublicBlueprint) -> AsItStands:
    body = json.loads(blueprint.text.replace(SECRET, "<YOUR ACCESS TOKEN>"))
    body["connector"]["parameters"] = {"project": "<YOUR PROJECT_ID>", "model_id": "<YOUR MODEL_ID>"}
    places = ("parameters.project", "parameters.model_id", "credential.vertexAI_token")
    return AsItStands(blueprint.name, True, body, places, "<YOUR PROJECT_ID>")


_NAMED = {blueprint.name: blueprint for blueprint in PUBLIC_BLUEPRINTS}
AS_THEY_STAND = [
    _azure(_NAMED["azure chat"], key="YOUR API KEY"),
    _azure(_NAMED["azure embedding"]),
    _azure(_NAMED["azure embedding, standard"]),
    _azure(_NAMED["azure as a judge"], key="<PLEASE ADD YOUR AZURE OPENAI API KEY HERE>"),
    _vertex(_NAMED["vertex embedding"]),
]
