"""Connector and model documents: validate a create request's body, read stored documents into frozen values.

The fields are those of ML Commons' indices `.plugins-ml-connector` and `.plugins-ml-model`. In a stored connector every
parameter is a string (JSON text for what was not one) and every credential is cipher text.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from opensearch_ml_stream.connectors.client_config import (
    ClientConfig,
    client_config_document,
    read_client_config,
)
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.connectors.syntax.jsontext import scalar_text, scalar_texts

PROTOCOLS = ("aws_sigv4", "http", "mcp_sse", "mcp_streamable_http")
PREDICT = "PREDICT"
BATCH_PREDICT = "BATCH_PREDICT"
JOB_ACTION_TYPES = ("CANCEL_BATCH_PREDICT", "BATCH_PREDICT_STATUS")  # about a job that runs, not a prediction
ACTION_TYPES = (PREDICT, "EXECUTE", BATCH_PREDICT, *JOB_ACTION_TYPES)
MAX_URL_LENGTH = 16_384  # characters; common servers refuse more than 8 to 16 KiB
MAX_ACTIONS = 100
MAX_HEADERS = 100  # of an action
MAX_PARAMETERS = 10_000
MAX_ACTION_NAME = 64  # characters

_ACTION_TEXTS = ("action_type", "name", "method", "url", "pre_process_function", "post_process_function")
_ACTION_NAME = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class Action:
    """One call that a connector can make: HTTP method, and templates of URL, headers and body."""

    action_type: str
    method: str
    url: str
    name: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    request_body: str | None = None
    pre_process_function: str | None = None
    post_process_function: str | None = None
    supports_structured_output: bool = False


@dataclass(frozen=True, slots=True)
class Connector:
    """A stored connector; the values of `credential` are cipher text."""

    name: str
    version: str
    protocol: str
    parameters: Mapping[str, str]
    credential: Mapping[str, str]
    actions: tuple[Action, ...]
    client_config: ClientConfig = field(default_factory=ClientConfig)
    description: str | None = None

    def action(self, action_type: str = PREDICT) -> Action:
        """Return the first action of the type. InvalidRequest if there is none."""
        for action in self.actions:
            if action.action_type == action_type:
                return action
        raise InvalidRequest(f"no {action_type} action found in connector {self.name}")


@dataclass(frozen=True, slots=True)
class Model:
    """A stored remote model; its connector is named by `connector_id` or stands in the document."""

    name: str
    connector_id: str | None
    connector: Connector | None
    is_enabled: bool
    document: Mapping[str, Any]


def read_connector(document: Mapping[str, Any]) -> Connector:
    """Return the connector of a stored document. InvalidRequest names the field that is wrong."""
    return Connector(
        name=_text(document, "name") or "",
        version=_text(document, "version") or "",
        protocol=_text(document, "protocol") or "",
        description=_text(document, "description"),
        parameters=parameter_texts(document.get("parameters")),
        credential=scalar_texts(_object(document.get("credential"), "credential"), "credential"),
        actions=tuple(_read_action(action) for action in _actions(document.get("actions"))),
        client_config=read_client_config(document.get("client_config")),
    )


def read_model(document: Mapping[str, Any]) -> Model:
    """Return the model of a stored document. InvalidRequest names a wrong field of its inline connector."""
    inline = document.get("connector")
    return Model(
        name=_text(document, "name") or "",
        connector_id=document.get("connector_id"),
        connector=read_connector(inline) if isinstance(inline, Mapping) else None,
        is_enabled=document.get("is_enabled") is not False,
        document=document,
    )


def connector_document(body: Mapping[str, Any], *, inline: bool = False) -> dict[str, Any]:
    """Validate a create request's body and return the document to store, with `credential` in clear text.

    An `inline` connector, one within a model, needs no name, version, credential or actions.
    It is left to the caller to check `_stream` and the trusted endpoints, to encrypt and to add the times.
    InvalidRequest names what is missing or wrong.
    """
    if not inline:
        _check_complete(body)
    protocol = _protocol(body)
    if body.get("actions") is None and not inline:
        raise InvalidRequest("No actions configured for this connector")
    credential = _object(body.get("credential"), "credential")
    parameters = parameter_texts(body.get("parameters"))
    texts = {name: text for name in ("name", "version", "description") if (text := _text(body, name)) is not None}
    document: dict[str, Any] = {**texts, "protocol": protocol}
    if body.get("parameters") is not None or not inline:
        document["parameters"] = parameters
    document["credential"] = scalar_texts(credential, "credential")
    document["actions"] = action_documents(body.get("actions"))
    if body.get("client_config") is not None:
        document["client_config"] = client_config_document(body["client_config"])
    if protocol == "aws_sigv4":
        _check_aws(parameters, credential)
    return document


def _check_complete(body: Mapping[str, Any]) -> None:
    """Raise InvalidRequest for a connector of its own without name, version, protocol or credential."""
    for name in ("name", "version", "protocol"):
        if body.get(name) is None:
            raise InvalidRequest(f"Connector {name} is null")
    if not (_text(body, "name") or "").strip():
        raise blank_name("Model connector")
    if not body.get("credential") or isinstance(body["credential"], str):
        raise InvalidRequest("Connector credential is null or empty list")


def _protocol(body: Mapping[str, Any]) -> str:
    if body.get("protocol") is None:
        raise InvalidRequest("connector protocol is null")
    protocol = scalar_text(body["protocol"], "protocol")
    if protocol not in PROTOCOLS:
        raise InvalidRequest(f"Unsupported connector protocol. Please use one of [{', '.join(PROTOCOLS)}]")
    if protocol.startswith("mcp_"):
        raise InvalidRequest(f"A connector with the protocol {protocol} is for agents, which ML Commons runs, not this")
    return protocol


def blank_name(kind: str) -> InvalidRequest:
    """Return ML Commons' error for a blank name of such a resource."""
    reason = f"Validation Failed: 1: {kind} name is required and cannot be null or blank;"
    return InvalidRequest(reason, type="action_request_validation_exception")


def parameter_texts(parameters: object) -> dict[str, str]:
    """Return parameters as they are stored: strings as they are, anything else as compact JSON text."""
    values = _object(parameters, "parameters")
    if len(values) > MAX_PARAMETERS:
        raise InvalidRequest(f"A connector may have {MAX_PARAMETERS} parameters; this one has {len(values)}")
    return {name: str(jsontext.to_parameter(value)) for name, value in values.items()}


def check_url_length(characters: int) -> None:
    """Raise InvalidRequest for a URL that is too long to be sent. To be called before anything parses or keeps it."""
    if characters > MAX_URL_LENGTH:
        raise InvalidRequest(
            f"The connector's url, filled with the parameters, has more than {MAX_URL_LENGTH} characters. "
            "Put long values into the request_body"
        )


def action_documents(actions: object) -> list[dict[str, Any]]:
    """Validate actions and return them as they are stored: `action_type` in upper case, without unknown fields."""
    return [_action_document(action) for action in _actions(actions)]


def _check_aws(parameters: Mapping[str, str], credential: Mapping[str, Any]) -> None:
    if not (credential.get("access_key") and credential.get("secret_key")):
        raise InvalidRequest("Missing credential")
    for name, label in (("service_name", "service name"), ("region", "region")):
        if not (parameters.get(name) or credential.get(name)):
            raise InvalidRequest(f"Missing {label}")


def _actions(actions: object) -> list[Mapping[str, Any]]:
    if actions is None:
        return []
    if not isinstance(actions, list) or not all(isinstance(action, Mapping) for action in actions):
        raise InvalidRequest("actions must be an array of objects")
    if len(actions) > MAX_ACTIONS:
        raise InvalidRequest(f"A connector may have {MAX_ACTIONS} actions; this one has {len(actions)}")
    return actions


def _action_document(action: Mapping[str, Any]) -> dict[str, Any]:
    for key, label in (("action_type", "action type"), ("url", "url"), ("method", "method")):
        if action.get(key) is None:
            raise InvalidRequest(f"{label} can't be null")
    texts = {name: text for name in _ACTION_TEXTS if (text := _text(action, name)) is not None}
    action_type = texts["action_type"].upper()
    if action_type not in ACTION_TYPES:
        raise InvalidRequest(f"Wrong Action Type of {texts['action_type']}")
    if (name := texts.get("name")) is not None:
        _check_action_name(name)
    check_url_length(len(texts["url"]))
    headers = _headers(action)
    document: dict[str, Any] = {**texts, "action_type": action_type}
    if "headers" in action:
        document["headers"] = headers
    if (body := action.get("request_body")) is not None:  # ML Commons takes no object here; many write one
        document["request_body"] = str(jsontext.to_parameter(body))
    if (flag := _text(action, "supports_structured_output")) is not None:
        document["supports_structured_output"] = flag.lower() == "true"
    return document


def _check_action_name(name: str) -> None:
    if len(name) > MAX_ACTION_NAME:
        raise InvalidRequest(f"Action name exceeds maximum length of {MAX_ACTION_NAME} characters")
    if not _ACTION_NAME.fullmatch(name):
        raise InvalidRequest(
            "Action name contains invalid characters. Only alphanumeric characters, hyphens, and underscores are "
            "allowed"
        )
    if name.upper() in ACTION_TYPES:
        raise InvalidRequest(f"name can't be one of action type [{', '.join(ACTION_TYPES)}]")


def _headers(action: Mapping[str, Any]) -> dict[str, str]:
    headers = _object(action.get("headers"), "headers")
    if len(headers) > MAX_HEADERS:
        raise InvalidRequest(f"An action may have {MAX_HEADERS} headers; this one has {len(headers)}")
    return scalar_texts(headers, "headers")


def _read_action(action: Mapping[str, Any]) -> Action:
    document = _action_document(action)
    return Action(**{**document, "method": document["method"].upper()})


def _text(document: Mapping[str, Any], name: str) -> str | None:
    """Return a field as text, None if it is absent or null. InvalidRequest for an object or array."""
    value = document.get(name)
    return None if value is None else scalar_text(value, name)


def _object(value: object, name: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidRequest(f"{name} must be an object")
    return dict(value)
