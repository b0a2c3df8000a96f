"""Load the settings from the command line, the environment and a YAML file, in this order of precedence."""

import json
import os
import re
from collections.abc import Container, Mapping
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.plugin.settings.setting_metadata import Setting, setting_named
from opensearch_ml_stream.plugin.settings.values import read_value

CONFIG_VARIABLE = "MLSTREAM_CONFIG"
VARIABLE_PREFIX = "MLSTREAM_"
SETTING_PREFIX = "MLSTREAM_SETTING__"
MAX_NAME_LENGTH = 256  # also bounds the depth of nested names
SHORT_VARIABLES = {
    "MLSTREAM_HOST": "opensearch_ml_stream.host",
    "MLSTREAM_PORT": "opensearch_ml_stream.port",
    "MLSTREAM_WORKERS": "opensearch_ml_stream.workers",
    "MLSTREAM_STORE": "opensearch_ml_stream.store",
}
# With those that the command line and the tests read.
VARIABLES = (
    *SHORT_VARIABLES, CONFIG_VARIABLE, "MLSTREAM_STORE_PASSWORD", "MLSTREAM_URL", "MLSTREAM_USER", "MLSTREAM_PASSWORD",
    "MLSTREAM_API_KEY", "MLSTREAM_PEERS", "MLSTREAM_CA_CERTS", "MLSTREAM_CLIENT_CERT",
)  # fmt: skip


def load_settings(
    defaults: Settings,
    config: Path | None = None,
    environment: Mapping[str, str] = os.environ,
    options: Mapping[str, object] | None = None,
) -> Settings:
    """Return the defaults with what all sources set. `options` are the command line's by full name, None if not given.

    InvalidRequest names the source that is wrong.
    """
    definitions = defaults.definitions()
    values: dict[Setting, Any] = {}
    if path := _config_path(config, environment):
        values |= _located(f"configuration file {path}", read_file(path, definitions), definitions)
    for variable, named in _environment_values(environment).items():
        values |= _located(f"environment variable {variable}", named, definitions)
    given = {name: value for name, value in (options or {}).items() if value is not None}
    values |= _located("command line", given, definitions)
    settings = defaults.changed(values)
    return settings if settings.store else replace(settings, store=default_store(environment))


def given_names(config: Path | None = None, environment: Mapping[str, str] = os.environ) -> set[str]:
    """Return the full names that the file and the environment set, whether there are such settings or not."""
    path = _config_path(config, environment)
    names = set(read_file(path, ())) if path else set()
    return names.union(*_environment_values(environment).values())


def unknown_variables(environment: Mapping[str, str] = os.environ) -> list[str]:
    """Return warnings about variables that look like ours but set nothing, with the most similar name."""
    warnings = []
    for name in sorted(environment):
        if name.startswith(VARIABLE_PREFIX) and not name.startswith(SETTING_PREFIX) and name not in VARIABLES:
            ends = [variable.removeprefix(VARIABLE_PREFIX) for variable in VARIABLES]
            similar = get_close_matches(name.removeprefix(VARIABLE_PREFIX), ends, n=1)
            hint = (
                f"did you mean {VARIABLE_PREFIX}{similar[0]}?" if similar else f"a setting a.b is {SETTING_PREFIX}A__B"
            )
            warnings.append(f"the environment variable {name} sets nothing; {hint}")
    return warnings


def default_store(environment: Mapping[str, str], name: str = "store") -> str:
    """Return the URL of an embedded store in the user's data directory."""
    data = environment.get("XDG_DATA_HOME") or os.path.join(
        environment.get("HOME") or os.path.expanduser("~"), ".local/share"
    )
    return f"sqlite:///{os.path.join(data, 'opensearch-ml-stream', f'{name}.db')}"


def read_file(path: Path, known: Container[str]) -> dict[str, Any]:
    """Return the settings of a YAML file by full name; its keys may be nested or dotted. See `flatten`."""
    try:
        document = yaml.load(path.read_text("utf-8"), _SettingsLoader)
    except OSError as error:
        raise InvalidRequest(f"Cannot read the configuration file {path}: {error.strerror}") from None
    except _YAML_ERRORS as error:
        raise InvalidRequest(f"The configuration file {path} is not YAML{_place(error)}") from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise InvalidRequest(f"The configuration file {path} must hold settings, as `name: value` lines")
    try:
        return flatten(document, known)
    except InvalidRequest as error:
        raise InvalidRequest(" ".join(f"configuration file {path}: {error.reason}".split())) from None


def flatten(document: Mapping[Any, Any], known: Container[str], prefix: str = "") -> dict[str, Any]:
    """Flatten nested objects to dotted names, but for values of known names.

    InvalidRequest if a name is too long, no string, or given twice.
    """
    flat: dict[str, Any] = {}
    for key, value in document.items():
        if not isinstance(key, str):
            raise InvalidRequest("the name of a setting must be a string")
        name = prefix + key
        if len(name) > MAX_NAME_LENGTH:
            raise InvalidRequest(f"setting [{name[:MAX_NAME_LENGTH]}...] not recognized")
        values = flatten(value, known, f"{name}.") if isinstance(value, dict) and name not in known else {name: value}
        if twice := sorted(values.keys() & flat.keys()):
            raise InvalidRequest(f"setting [{twice[0]}] is given twice")
        flat |= values
    return flat


class _SettingsLoader(yaml.SafeLoader):
    """A safe loader that refuses aliases, which can make a document of any size, and repeated keys."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Refuse aliases."""
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(problem="aliases are not supported", problem_mark=mark)
        return super().compose_node(parent, index)

    def compose_mapping_node(self, anchor: dict[Any, yaml.Node]) -> yaml.MappingNode:
        """Refuse a key that is given twice: YAML forbids it, PyYAML would take the last one."""
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise yaml.MarkedYAMLError(problem="this key is given twice", problem_mark=key.start_mark)
                seen.add(key.value)
        return node


# PyYAML's constructors raise more than YAMLError for values such as `!!int ""`, `!!bool x` or 2026-99-99.
_YAML_ERRORS = (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError, ArithmeticError, RecursionError)


def _place(error: BaseException) -> str:
    """Return what is wrong and where, without PyYAML's quotations of the file: a line of it may hold a password."""
    if isinstance(error, RecursionError):
        return ": it is nested too deeply"
    mark = getattr(error, "problem_mark", None)
    problem = re.sub(r"""(['"])(?!<).{2,}\1""", "...", getattr(error, "problem", None) or "a value cannot be read")
    return f": {problem}" if mark is None else f" at line {mark.line + 1}, column {mark.column + 1}: {problem}"


def _environment_values(environment: Mapping[str, str]) -> dict[str, dict[str, object]]:
    """Return by variable the name and value that it sets. A list is JSON, or one string; an object is JSON."""
    values: dict[str, dict[str, object]] = {}
    for variable, text in sorted(environment.items()):
        if variable in SHORT_VARIABLES:
            name = SHORT_VARIABLES[variable]
        elif variable.startswith(SETTING_PREFIX):
            name = variable.removeprefix(SETTING_PREFIX).replace("__", ".").lower()
        else:
            continue
        values[variable] = {name: _json_value(text)}
    return values


def _located(source: str, values: Mapping[str, object], definitions: Mapping[str, Setting]) -> dict[Setting, Any]:
    """Check and convert values. InvalidRequest names the source."""
    try:
        named = {setting_named(definitions, name): value for name, value in values.items()}
        return {setting: read_value(setting, value) for setting, value in named.items()}
    except InvalidRequest as error:
        raise InvalidRequest(" ".join(f"{source}: {error.reason}".split())) from None  # a name may hold line ends


def _json_value(text: str) -> object:
    if not text.startswith(("[", "{")):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _config_path(config: Path | None, environment: Mapping[str, str]) -> Path | None:
    text = environment.get(CONFIG_VARIABLE)
    return config or (Path(text) if text else None)
