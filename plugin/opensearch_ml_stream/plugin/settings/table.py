"""Every setting in one table: its name, what it may hold, whether it can change at run time, and what it is for.

The configuration file, the environment, `_plugins/_ml/_settings`, the command line's listing and the README's
table are all made from it.
"""

from dataclasses import dataclass, fields
from typing import Any, Literal

import re2

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.settings import Settings

Kind = Literal["boolean", "integer", "number", "text", "list", "regex", "regexes"]

MAX_REGEX_LENGTH = 256  # as ML Commons


@dataclass(frozen=True, slots=True)
class Setting:
    """`field` is its name in Settings. `minimum` and `maximum` bound numbers, `choices` texts."""

    name: str
    field: str
    kind: Kind
    help: str
    dynamic: bool = False
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()

    @property
    def default(self) -> object:
        return DEFAULTS[self.field]


DEFAULTS: dict[str, Any] = {field.name: field.default for field in fields(Settings)}

_ML = "plugins.ml_commons."
_OWN = "opensearch_ml_stream."

SETTINGS = (
    Setting(_OWN + "host", "host", "text", "Address to listen on"),
    Setting(_OWN + "port", "port", "integer", "Port to listen on", minimum=0, maximum=65535),
    Setting(_OWN + "workers", "workers", "integer", "Worker processes", minimum=1, maximum=256),
    Setting(_OWN + "store", "store", "text", "Where models live: sqlite:///PATH or http(s)://user:pass@host:port"),
    Setting(_OWN + "index_prefix", "index_prefix", "text", "Put before the names of all indices"),
    Setting(_OWN + "max_body_size", "max_body_size", "integer", "Largest request body, in bytes", minimum=1),
    Setting(
        _OWN + "shutdown_grace_seconds",
        "shutdown_grace_seconds",
        "number",
        "How long running streams may go on after SIGTERM",
        minimum=0,
    ),
    Setting(
        _OWN + "first_event_wait_seconds",
        "first_event_wait_seconds",
        "number",
        "How long a stream waits for the provider's first event before it answers 200",
        minimum=0,
    ),
    Setting(
        _OWN + "heartbeat_seconds",
        "heartbeat_seconds",
        "number",
        "Silence after which a heartbeat is sent",
        minimum=0.1,
    ),
    Setting(
        _OWN + "external_credentials_enabled",
        "external_credentials_enabled",
        "boolean",
        "Allow credentials of the form env:NAME and file:PATH, read at use",
    ),
    Setting(
        _OWN + "upstream",
        "upstream",
        "text",
        "Client for providers; aiohttp is taken by itself where an HTTP proxy is set",
        choices=("native", "aiohttp"),
    ),
    Setting(
        _ML + "trusted_connector_endpoints_regex",
        "trusted_connector_endpoints_regex",
        "regexes",
        "URLs that connectors may call",
        dynamic=True,
    ),
    Setting(
        _ML + "trusted_connector_private_endpoints_regex",
        "trusted_connector_private_endpoints_regex",
        "regexes",
        "URLs with private addresses that connectors may call (all, if empty)",
        dynamic=True,
    ),
    Setting(
        _ML + "connector.private_ip_enabled",
        "private_ip_enabled",
        "boolean",
        "Allow providers on private and loopback addresses",
        dynamic=True,
    ),
    Setting(
        _ML + "connector.restricted_ip_patterns",
        "restricted_ip_patterns",
        "regexes",
        "Addresses that no connector may call",
    ),
    Setting(
        _ML + "remote_inference.enabled", "remote_inference_enabled", "boolean", "Allow remote models", dynamic=True
    ),
    Setting(_ML + "stream_enabled", "stream_enabled", "boolean", "Allow _predict/stream", dynamic=True),
    Setting(
        _ML + "model_auto_deploy.enable",
        "model_auto_deploy_enable",
        "boolean",
        "Deploy a model at its first prediction",
        dynamic=True,
    ),
    Setting(
        _ML + "offline_batch_inference_enabled",
        "offline_batch_inference_enabled",
        "boolean",
        "Allow _batch_predict",
        dynamic=True,
    ),
    Setting(
        _ML + "max_batch_inference_tasks",
        "max_batch_inference_tasks",
        "integer",
        "Batch jobs that may be open at once",
        dynamic=True,
        minimum=0,
    ),
    Setting(
        _ML + "max_json_size",
        "max_json_size",
        "integer",
        "Largest answer of a provider to a whole prediction, in bytes",
        dynamic=True,
        minimum=1,
    ),
    Setting(
        _ML + "master_key_cache_ttl_minutes",
        "master_key_cache_ttl_minutes",
        "integer",
        "How long the encryption key is kept in memory",
        minimum=0,
    ),
    Setting(
        _ML + "remote_job.status_field",
        "remote_job_status_field",
        "list",
        "Fields of a batch job that hold its state",
        dynamic=True,
    ),
    *(
        Setting(
            f"{_ML}remote_job.status_regex.{state}",
            f"remote_job_status_{state}",
            "regex",
            f"Words for a batch job that is {state}",
            dynamic=True,
        )
        for state in ("completed", "cancelled", "cancelling", "expired", "failed")
    ),
)

BY_NAME = {setting.name: setting for setting in SETTINGS}


def read_value(setting: Setting, value: object) -> Any:
    """The value as its field holds it, from YAML, JSON or a text; InvalidRequest says what was expected."""
    match setting.kind:
        case "boolean":
            return _boolean(setting, value)
        case "integer" | "number":
            return _number(setting, value)
        case "list" | "regexes":
            return _texts(setting, value)
        case "text" | "regex":
            return _text(setting, value)


def _boolean(setting: Setting, value: object) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise _wrong(setting, "true or false")


def _number(setting: Setting, value: object) -> float:
    read = int if setting.kind == "integer" else float
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float | str)
        or (read is int and isinstance(value, float))
    ):
        raise _wrong(setting, _range(setting))
    try:
        number = read(value)
    except ValueError:
        raise _wrong(setting, _range(setting)) from None
    low, high = setting.minimum, setting.maximum
    if not ((low is None or number >= low) and (high is None or number <= high) and abs(number) < 2**63):
        raise _wrong(setting, _range(setting))
    return number


def _range(setting: Setting) -> str:
    noun = "a whole number" if setting.kind == "integer" else "a number"
    if setting.maximum is not None:
        return f"{noun} from {setting.minimum} to {setting.maximum}"
    return noun if setting.minimum is None else f"{noun} of at least {setting.minimum}"


def _text(setting: Setting, value: object) -> str:
    if not isinstance(value, str):
        raise _wrong(setting, "a text")
    if setting.choices and value not in setting.choices:
        raise _wrong(setting, " or ".join(setting.choices))
    if setting.kind == "regex":
        _check_regex(setting, value)
    return value


def _texts(setting: Setting, value: object) -> tuple[str, ...]:
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list | tuple) or not all(isinstance(item, str) for item in values):
        raise _wrong(setting, "a list of texts")
    if setting.kind == "regexes":
        for item in values:
            _check_regex(setting, item)
    return tuple(values)


def _check_regex(setting: Setting, pattern: str) -> None:
    if len(pattern) > MAX_REGEX_LENGTH:
        raise _wrong(setting, f"regular expressions of at most {MAX_REGEX_LENGTH} characters")
    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(pattern, options)
    except re2.error as error:
        said = error.args[0].decode() if error.args else ""
        raise _wrong(setting, f"regular expressions of RE2 (no back-references, no look-around): {said}") from None


def _wrong(setting: Setting, expected: str) -> InvalidRequest:
    """The value itself is not repeated: the store's URL may hold a password."""
    return InvalidRequest(f"Failed to parse the value of setting [{setting.name}]: expected {expected}")
