"""Check and convert the values of settings from any source."""

import re
from collections.abc import Sequence
from ipaddress import ip_network
from typing import Any

import re2

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.settings.endpoint_patterns import MAX_PATTERN_LENGTH, compile_endpoint
from opensearch_ml_stream.plugin.settings.setting_metadata import Setting

_HOST_NAME = r"[a-z0-9._-]*[a-z0-9_-]"
_HOST = re.compile(_HOST_NAME)
_ORIGIN = re.compile(rf"([a-z][a-z0-9+.-]*)://((?:{_HOST_NAME}|\[[0-9a-f:.]+\]))(?::([0-9]{{1,5}}))?")
_HEADER = re.compile(r"[a-z0-9!#$%&'*+.^_`|~-]+")  # RFC 9110, 5.6.2
_NO_USER_HEADERS = ("authorization", "connection", "content-length", "host", "transfer-encoding", "x-forwarded-for")
_DEFAULT_PORTS = {"http": "80", "https": "443"}


def read_value(setting: Setting, value: object) -> Any:
    """Convert a value from YAML, JSON or a string to the type of its field. InvalidRequest says what was expected."""
    match setting.kind:
        case "boolean":
            return _boolean(setting, value)
        case "integer" | "number":
            return _number(setting, value)
        case "list" | "regexes" | "endpoints":
            return _strings(setting, value)
        case "origins":
            return tuple(_origin(setting, origin) for origin in _strings(setting, value))
        case "hosts":
            return tuple(_host(setting, host) for host in _strings(setting, value))
        case "networks":
            return tuple(_network(setting, network) for network in _strings(setting, value))
        case "header":
            return _header(setting, value)
        case "permissions":
            return _permissions(setting, value)
        case "string" | "regex" | "secret":
            return _string(setting, value)


def _boolean(setting: Setting, value: object) -> bool | None:
    if value is None and setting.default is None:
        return None
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise _parse_error(setting, "true or false")


def _number(setting: Setting, value: object) -> float | None:
    if value is None and setting.default is None:
        return None
    read = int if setting.kind == "integer" else float
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float | str)
        or (read is int and isinstance(value, float))
    ):
        raise _parse_error(setting, _range(setting))
    try:
        number = read(value)
    except (ValueError, OverflowError):  # an integer may have more digits than fit into a float
        raise _parse_error(setting, _range(setting)) from None
    low, high = setting.minimum, setting.maximum
    if not ((low is None or number >= low) and (high is None or number <= high) and abs(number) < 2**63):
        raise _parse_error(setting, _range(setting))
    return number


def _range(setting: Setting) -> str:
    noun = "an integer" if setting.kind == "integer" else "a number"
    if setting.maximum is not None:
        return f"{noun} from {setting.minimum} to {setting.maximum}"
    return noun if setting.minimum is None else f"{noun} of at least {setting.minimum}"


def _string(setting: Setting, value: object) -> str:
    if not isinstance(value, str) or not _is_text(value):
        raise _parse_error(setting, "a string")
    if setting.choices and value not in setting.choices:
        raise _parse_error(setting, " or ".join(setting.choices))
    if setting.kind == "regex":
        _check_regex(setting, value)
    if setting.kind == "secret" and value and not value.startswith(("env:", "file:")):
        raise _parse_error(setting, "env:NAME or file:PATH, where the secret is, not the secret itself")
    return value


def _strings(setting: Setting, value: object) -> tuple[str, ...]:
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list | tuple) or not all(isinstance(item, str) and _is_text(item) for item in values):
        raise _parse_error(setting, "a list of strings")
    if setting.kind in ("regexes", "endpoints"):
        for item in values:
            _check_regex(setting, item)
    if setting.kind == "endpoints":
        _check_endpoints(setting, values)
    return tuple(values)


def _is_text(value: str) -> bool:
    """Whether a string can be a path, a host name or a pattern: no NUL, and no half of a surrogate pair."""
    return "\0" not in value and not any("\ud800" <= character <= "\udfff" for character in value)


def _origin(setting: Setting, origin: str) -> str:
    """Return the origin as browsers send it: in lower case, without its scheme's own port."""
    match = _ORIGIN.fullmatch(origin.lower())
    if match is None:
        raise _parse_error(setting, "origins as browsers send them, such as https://app.example.com: no path, no slash")
    scheme, host, port = match.groups()
    return f"{scheme}://{host}" if port in (None, _DEFAULT_PORTS.get(scheme)) else f"{scheme}://{host}:{port}"


def _host(setting: Setting, host: str) -> str:
    name = host.lower().removesuffix(".")
    if _HOST.fullmatch(name) is None:
        raise _parse_error(setting, "host names such as ml.example.com: no scheme, no port")
    return name


def _network(setting: Setting, network: str) -> str:
    try:
        return str(ip_network(network))
    except ValueError:
        raise _parse_error(setting, "addresses or networks such as 10.0.0.5, 10.0.1.0/24, 2001:db8::/64") from None


def _header(setting: Setting, value: object) -> str:
    name = _string(setting, value).lower()
    if name in _NO_USER_HEADERS or ((name or setting.default) and not _HEADER.fullmatch(name)):
        raise _parse_error(setting, "the name of a header that a proxy sets, such as x-proxy-user")
    return name


def _permissions(setting: Setting, value: object) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if isinstance(value, tuple):
        return value
    if not isinstance(value, dict) or not all(isinstance(role, str) and _is_text(role) for role in value):
        raise _parse_error(setting, "an object with a list of actions or action groups for each role")
    return tuple((role, _strings(setting, actions)) for role, actions in value.items())


def _check_regex(setting: Setting, pattern: str) -> None:
    if len(pattern) > MAX_PATTERN_LENGTH:
        raise _parse_error(setting, f"regular expressions of at most {MAX_PATTERN_LENGTH} characters")
    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(pattern, options)
    except re2.error as error:
        problem = error.args[0].decode() if error.args else ""
        expected = f"regular expressions of RE2 (no back-references, no look-around): {problem}"
        raise _parse_error(setting, expected) from None


def _check_endpoints(setting: Setting, patterns: Sequence[str]) -> None:
    for pattern in patterns:
        try:
            compile_endpoint(pattern)
        except InvalidRequest as error:
            expected = rf"regular expressions for URLs, such as ^https://host\.example/.*$: {error.reason}"
            raise _parse_error(setting, expected) from None


def _parse_error(setting: Setting, expected: str) -> InvalidRequest:
    """Return the error, which does not repeat the value: the store's URL may hold a password."""
    return InvalidRequest(f"Failed to parse the value of setting [{setting.name}]: expected {expected}")
