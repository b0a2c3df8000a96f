"""Settings from the command line, the environment and a YAML file, in this order of precedence."""

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.plugin.settings.table import BY_NAME, SETTINGS, Setting, read_value

CONFIG_VARIABLE = "MLSTREAM_CONFIG"
SETTING_PREFIX = "MLSTREAM_SETTING__"
SHORT_VARIABLES = {
    "MLSTREAM_HOST": "opensearch_ml_stream.host",
    "MLSTREAM_PORT": "opensearch_ml_stream.port",
    "MLSTREAM_WORKERS": "opensearch_ml_stream.workers",
    "MLSTREAM_STORE": "opensearch_ml_stream.store",
}


def load_settings(
    config: Path | None = None,
    environment: Mapping[str, str] = os.environ,
    options: Mapping[str, object] | None = None,
) -> Settings:
    """The settings of all sources. `options` are the command line's, by field; None among them is "not given".

    InvalidRequest says which source is wrong, and how.
    """
    path = config or _path(environment.get(CONFIG_VARIABLE))
    values = {} if path is None else _located(f"configuration file {path}", read_file(path))
    values |= _environment_values(environment)
    given = {field: value for field, value in (options or {}).items() if value is not None}
    values |= _located(
        "command line", {setting.name: given[setting.field] for setting in SETTINGS if setting.field in given}
    )
    settings = replace(Settings(), **values)
    return settings if settings.store else replace(settings, store=default_store(environment))


def default_store(environment: Mapping[str, str]) -> str:
    """The embedded store, in the user's data directory."""
    data = environment.get("XDG_DATA_HOME") or os.path.join(
        environment.get("HOME") or os.path.expanduser("~"), ".local/share"
    )
    return f"sqlite:///{os.path.join(data, 'opensearch-ml-stream', 'store.db')}"


def read_file(path: Path) -> dict[str, Any]:
    """The file's settings by full name; its keys may be nested or dotted."""
    try:
        document = yaml.safe_load(path.read_text("utf-8"))
    except OSError as error:
        raise InvalidRequest(f"Cannot read the configuration file {path}: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"The configuration file {path} is not YAML: {_one_line(error)}") from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise InvalidRequest(f"The configuration file {path} must hold settings, as `name: value` lines")
    return flatten(document)


def flatten(document: Mapping[Any, Any]) -> dict[str, Any]:
    """Nested objects as dotted names; InvalidRequest if a name is given twice."""
    flat: dict[str, Any] = {}
    for key, value in document.items():
        inner = flatten(value) if isinstance(value, dict) and str(key) not in BY_NAME else None
        found = {str(key): value} if inner is None else {f"{key}.{name}": item for name, item in inner.items()}
        for name, item in found.items():
            if name in flat:
                raise InvalidRequest(f"setting [{name}] is given twice")
            flat[name] = item
    return flat


def setting_named(name: str) -> Setting:
    """The setting of that full name; InvalidRequest with the nearest known one if there is none."""
    if name in BY_NAME:
        return BY_NAME[name]
    near = get_close_matches(name, BY_NAME, n=1, cutoff=0.5)
    hint = f", did you mean [{near[0]}]?" if near else ""
    raise InvalidRequest(f"setting [{name}] not recognized{hint}")


def _environment_values(environment: Mapping[str, str]) -> dict[str, Any]:
    """Values by field; a list is JSON, or one text."""
    values: dict[str, Any] = {}
    for variable, text in sorted(environment.items()):
        if variable in SHORT_VARIABLES:
            name = SHORT_VARIABLES[variable]
        elif variable.startswith(SETTING_PREFIX):
            name = variable.removeprefix(SETTING_PREFIX).replace("__", ".").lower()
        else:
            continue
        values |= _located(f"environment variable {variable}", {name: _json_list(text)})
    return values


def _located(source: str, values: Mapping[str, object]) -> dict[str, Any]:
    """Checked values by field; what is wrong is said together with where it stands."""
    try:
        named = {setting_named(name): value for name, value in values.items()}
        return {setting.field: read_value(setting, value) for setting, value in named.items()}
    except InvalidRequest as error:
        raise InvalidRequest(f"{source}: {error.reason}") from None


def _json_list(text: str) -> object:
    if not text.startswith("["):
        return text
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def _path(text: str | None) -> Path | None:
    return Path(text) if text else None


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
