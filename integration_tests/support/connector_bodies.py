"""Connector bodies for tests: the shipped blueprints, pointed at a provider on loopback."""

import json
from pathlib import Path
from typing import Any

BLUEPRINTS = Path(__file__).parents[2] / "blueprints"


def blueprint_connector(name: str, endpoint: str, **parameters: str) -> dict[str, Any]:
    """The connector of a blueprint with its endpoint, and other parameters, replaced."""
    connector: dict[str, Any] = json.loads((BLUEPRINTS / f"{name}.json").read_text())["connector"]
    connector["parameters"] |= {"endpoint": endpoint, **parameters}
    connector["credential"] = dict.fromkeys(connector["credential"], "sk-secret-1234567890")
    return connector


def openai(endpoint: str, **more: Any) -> dict[str, Any]:
    return {**blueprint_connector("openai-chat", endpoint), **more}


def anthropic(endpoint: str) -> dict[str, Any]:
    return blueprint_connector("anthropic-messages", endpoint)
