"""The `client_config` of a connector: checked when a caller gives it, read tolerantly when it is stored."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest

NO_LIMIT = 2**31 - 1
RETRY_POLICIES = ("constant", "exponential_equal_jitter", "exponential_full_jitter")


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


_NAMES = tuple(entry.name for entry in fields(ClientConfig))
_LEAST = {"max_connection": "at least 1", "connection_timeout": "more than 0", "read_timeout": "more than 0"}
_STORED_IF_GIVEN = ("max_connection", "mutual_tls_enabled", "keystore_type")
_DEFAULTS = {entry.name: entry.default for entry in fields(ClientConfig) if entry.name not in _STORED_IF_GIVEN}


def client_config_document(config: object) -> dict[str, Any]:
    """Return a caller's `client_config` as it is stored: numbers as numbers, with ML Commons' defaults.

    InvalidRequest names a key that is unknown, or has a wrong value.
    """
    given = _object(config)
    for name in given:
        if name not in _NAMES:
            raise InvalidRequest(f"client_config has no key [{name}]; it knows {', '.join(sorted(_NAMES))}")
    values = {name: _value(name, value) for name, value in given.items()}
    return {name: value for name in _NAMES if (value := values.get(name, _DEFAULTS.get(name))) is not None}


def read_client_config(config: object) -> ClientConfig:
    """Return the settings of a stored `client_config`. A value that is of no use here gives way to the default.

    ML Commons checks less than this, and a newer one has more keys: neither may make a model unusable.
    """
    values: dict[str, Any] = {}
    for name, value in config.items() if isinstance(config, Mapping) else ():
        if name in _NAMES and (usable := _usable(name, value)) is not None:
            values[name] = usable
    return ClientConfig(**values)


def _object(config: object) -> Mapping[str, Any]:
    if not isinstance(config, Mapping):
        raise InvalidRequest("client_config must be an object")
    return config


def _usable(name: str, value: Any) -> Any:
    try:
        return _value(name, value)
    except InvalidRequest:
        return None


def _value(name: str, value: Any) -> Any:
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
    return _number(name, value)


def _number(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidRequest(f"client_config.{name} must be a number") from None
    minimum = -1 if name == "max_retry_times" else 0
    least = _LEAST.get(name, f"{minimum} or more")
    out_of_range = InvalidRequest(f"client_config.{name} is out of range: it must be {least}, and at most {NO_LIMIT}")
    if not minimum <= number <= NO_LIMIT:  # "NaN" is neither
        raise out_of_range
    if number.is_integer() or name in ("max_connection", "max_retry_times", "retry_backoff_millis"):
        number = int(number)
    if number == 0 and name in _LEAST:  # a max_connection of 0.5 too
        raise out_of_range
    return number
