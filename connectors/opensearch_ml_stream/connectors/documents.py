"""Connector and model documents: validate a create request's body, read stored documents into frozen values.

The fields are those of ML Commons' indices `.plugins-ml-connector` and `.plugins-ml-model`. In a stored connector every
parameter is a string (JSON text for what was not one) and every credential is cipher text.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.connectors.syntax.scalars import scalar_text, scalar_texts

PROTOCOLS = ("aws_sigv4", "http", "mcp_sse", "mcp_streamable_http")
PREDICT = "PREDICT"
BATCH_PREDICT = "BATCH_PREDICT"
JOB_ACTION_TYPES = ("CANCEL_BATCH_PREDICT", "BATCH_PREDICT_STATUS")  # about a job that runs, not a prediction
ACTION_TYPES = (PREDICT, "EXECUTE", BATCH_PREDICT, *JOB_ACTION_TYPES)
NO_LIMIT = 2**31 - 1
MAX_URL_LENGTH = 16_384  # characters; common servers refuse more than 8 to 16 KiB
MAX_ACTIONS = 100
MAX_HEADERS = 100  # of an action
MAX_PARAMETERS = 10_000
RETRY_POLICIES = ("constant", "exponential_equal_jitter", "exponential_full_jitter")

_ACTION_TEXTS = ("action_type", "name", "method", "url", "pre_process_function", "post_process_function")
_ACTION_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """Settings of the calls to a connector's provider. Timeouts in seconds, `retry_backoff_millis` in milliseconds.

    `max_connection` limits each worker process. ML Commons' default of 30 is not taken over: its streams ignore the
    limit, and the 31st user of a chat model should not wait for another's response to end unless the operator says so.
    """

    max_connection: int = NO_LIMIT
    connection_timeout: float = 30
    read_timeout: float = 30
    retry_backoff_millis: int = 200
    retry_timeout_seconds: float = 30
    max_retry_times: int = 0
    retry_backoff_policy: str = "constant"
    skip_ssl_verification: bool = False
    mutual_tls_enabled: bool = False
    keystore_type: str | None = None


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


def connector_document(body: Mapping[str, Any]) -> dict[str, Any]:
    """Validate a create request's body and return the document to store, with `credential` in clear text.

    It is left to the caller to check `_stream` and the trusted endpoints, to encrypt and to add the times.
    InvalidRequest names what is missing or wrong.
    """
    for name in ("name", "version", "protocol"):
        if body.get(name) is None:
            raise InvalidRequest(f"Connector {name} is null")
    protocol = scalar_text(body["protocol"], "protocol")
    if protocol not in PROTOCOLS:
        raise InvalidRequest(f"Unsupported connector protocol. Please use one of [{', '.join(PROTOCOLS)}]")
    credential = _object(body.get("credential"), "credential")
    if not credential:
        raise InvalidRequest("Connector credential is null or empty list")
    if body.get("actions") is None:
        raise InvalidRequest("No actions configured for this connector")
    texts = {name: _text(body, name) for name in ("name", "version", "description")}
    document: dict[str, Any] = {name: text for name, text in texts.items() if text is not None}
    document["protocol"] = protocol
    parameters = parameter_texts(body.get("parameters"))
    if parameters:
        document["parameters"] = parameters
    document["credential"] = scalar_texts(credential, "credential")
    document["actions"] = action_documents(body["actions"])
    if body.get("client_config") is not None:
        read_client_config(body["client_config"])
        document["client_config"] = dict(body["client_config"])
    if protocol == "aws_sigv4":
        _check_aws(parameters, credential)
    return document


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


def read_client_config(config: object) -> ClientConfig:
    """Return the settings of a `client_config` object. InvalidRequest names a key that is unknown or a wrong value."""
    names = sorted(entry.name for entry in fields(ClientConfig))
    values: dict[str, Any] = {}
    for name, value in _object(config, "client_config").items():
        if name not in names:
            raise InvalidRequest(f"client_config has no key [{name}]; it knows {', '.join(names)}")
        values[name] = _client_value(name, value)
    return ClientConfig(**values)


def _client_value(name: str, value: Any) -> Any:
    if name in ("skip_ssl_verification", "mutual_tls_enabled"):
        if str(value).lower() not in ("true", "false"):
            raise InvalidRequest(f"client_config.{name} must be true or false")
        return str(value).lower() == "true"
    if name == "retry_backoff_policy":
        if str(value).lower() not in RETRY_POLICIES:
            raise InvalidRequest(f"client_config.{name} must be one of {', '.join(RETRY_POLICIES)}")
        return str(value).lower()
    if name == "keystore_type":
        if value not in ("PEM", "PKCS12"):
            raise InvalidRequest("client_config.keystore_type must be PEM or PKCS12")
        return value
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidRequest(f"client_config.{name} must be a number") from None
    minimum = -1 if name == "max_retry_times" else 0
    is_zero = number == 0 and name in ("max_connection", "connection_timeout", "read_timeout")
    if not minimum <= number <= NO_LIMIT or is_zero:  # "NaN" is neither
        raise InvalidRequest(f"client_config.{name} is out of range: it may be up to {NO_LIMIT}")
    return int(number) if name in ("max_connection", "max_retry_times", "retry_backoff_millis") else number


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
    name = texts.get("name")
    if name is not None and (not _ACTION_NAME.fullmatch(name) or name.upper() in ACTION_TYPES):
        raise InvalidRequest("Action name must be 1-64 characters of A-Z, a-z, 0-9, _ and -, and no action type")
    check_url_length(len(texts["url"]))
    document: dict[str, Any] = {**texts, "action_type": action_type, "method": texts["method"].upper()}
    if headers := _headers(action):
        document["headers"] = headers
    if (body := action.get("request_body")) is not None:  # ML Commons takes no object here; many write one
        document["request_body"] = str(jsontext.to_parameter(body))
    if (flag := _text(action, "supports_structured_output")) is not None:
        document["supports_structured_output"] = flag.lower() == "true"
    return document


def _headers(action: Mapping[str, Any]) -> dict[str, str]:
    headers = _object(action.get("headers"), "headers")
    if len(headers) > MAX_HEADERS:
        raise InvalidRequest(f"An action may have {MAX_HEADERS} headers; this one has {len(headers)}")
    return scalar_texts(headers, "headers")


def _read_action(action: Mapping[str, Any]) -> Action:
    return Action(**_action_document(action))


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
