"""Blueprints: one connector document for each provider, with the values that a user has to give.

A file holds `{"name", "description", "credential": {key: help}, "parameters": {name: help}, "required": [name],
"connector": {...}, "model": {"name", "description"}}`. A connector body alone, as ML Commons' documentation has them,
is read as well.
"""

import json
import re
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn

from opensearch_ml_stream.client.errors import RequestRefused

_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)  # or a string, which stays
_PLACEHOLDER = re.compile(r"<[^<>]*>|(?:YOUR|PLEASE|REPLACE)[ _-][A-Z0-9 _-]+")
_PARAMETER = re.compile(r"\$\{parameters\.([A-Za-z0-9_.-]+)")
_URL = re.compile(r"\$\{parameters\.([A-Za-z0-9_.-]+)\}([^?]*)")  # a parameter for the host, and the path behind it


@dataclass(frozen=True, slots=True)
class Blueprint:
    """A blueprint file's content.

    `connector` is the body for `connectors/_create`; `credential` and `parameters` hold one line of help for each value
    that a user may give; `required` names the parameters whose values in `connector` only show what one looks like,
    such as a host of the user's own; `model` holds members for the body of `models/_register`.
    """

    name: str
    description: str
    connector: Mapping[str, Any]
    credential: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)
    required: Sequence[str] = ()
    model: Mapping[str, Any] = field(default_factory=dict)


def blueprint_folders() -> tuple[Path, ...]:
    """Return the folders to search: the checkout's (of an editable install), then the environment's share folders."""
    checkout = Path(__file__).resolve().parents[3] / "blueprints"
    schemes = {sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user")}
    shared = (Path(sysconfig.get_path("data", scheme)) for scheme in sorted(schemes))
    return (checkout, *(folder / "share" / "opensearch-ml-stream" / "blueprints" for folder in shared))


def list_blueprints() -> list[Blueprint]:
    """Return all shipped blueprints, sorted by name; RequestRefused if none are installed."""
    for folder in blueprint_folders():
        blueprints = [read_blueprint(file) for file in folder.glob("*.json")]
        if blueprints:
            return sorted(blueprints, key=lambda blueprint: blueprint.name)
    raise _not_found("No blueprints are installed; give a file to --blueprint instead")


def find_blueprint(name: str) -> Blueprint:
    """Return a shipped blueprint by its name, or any by its path (with a `/` or `.json`).

    Raises:
        RequestRefused: If no shipped blueprint has that name, with those most like it; or if the file cannot be read
            or is not a blueprint.
    """
    if name.endswith(".json") or "/" in name:
        return read_blueprint(Path(name))
    shipped = {blueprint.name: blueprint for blueprint in list_blueprints()}
    if name not in shipped:
        near = get_close_matches(name, shipped, n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else "`opensearch-ml-stream blueprints list` shows all"
        raise _not_found(f"No blueprint is named {name}; {hint}")
    return shipped[name]


def read_blueprint(path: Path) -> Blueprint:
    """Read a blueprint file; RequestRefused names the file and what is wrong with it."""
    try:
        document = _parse(path.read_text("utf-8-sig"))
    except OSError as error:
        raise _invalid(f"Cannot read the blueprint {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise _invalid(f"The blueprint {path} is not JSON: {error}") from None
    if "actions" in document:
        document = {"connector": document}
    connector = document.get("connector")
    if not isinstance(connector, Mapping):
        raise _invalid(f"The blueprint {path} has no [connector] object")
    return Blueprint(
        name=str(document.get("name", path.stem)),
        description=str(document.get("description", connector.get("description", ""))),
        connector=connector,
        credential=document.get("credential") or dict.fromkeys(connector.get("credential") or {}, ""),
        parameters=document.get("parameters") or {},
        required=tuple(document.get("required") or ()),
        model=document.get("model") or {},
    )


def connector_body(
    blueprint: Blueprint,
    parameters: Mapping[str, Any],
    credential: Mapping[str, str],
    name: str | None = None,
) -> dict[str, Any]:
    """Return the body for `connectors/_create`: the blueprint's connector with the given values filled in.

    Raises:
        RequestRefused: Names a credential or a parameter that the blueprint does not have, a value that is still
            missing, or an endpoint that holds the path which the blueprint adds.
    """
    for key in credential:
        if key not in blueprint.credential:
            keys = ", ".join(blueprint.credential) or "none"
            raise _invalid(f"{blueprint.name} has no credential [{key}]; it takes {keys}")
    known = _known_parameters(blueprint)
    for key in parameters:
        if key not in known and not key.startswith("_"):  # those are for the sidecar, whatever the template holds
            near = get_close_matches(key, known, n=1)
            hint = f"did you mean [{near[0]}]?" if near else f"it takes {', '.join(sorted(known)) or 'none'}"
            raise _invalid(f"{blueprint.name} has no parameter [{key}]; {hint}")
    for key in blueprint.required:
        if key not in parameters:
            raise _invalid(_missing_value(blueprint, "parameters", key, blueprint.parameters.get(key, "")))
    _check_base_urls(blueprint, parameters)
    filled = {
        **blueprint.connector,
        "parameters": {**(blueprint.connector.get("parameters") or {}), **parameters},
        "credential": {**(blueprint.connector.get("credential") or {}), **credential},
    }
    for part, help_texts in (("credential", blueprint.credential), ("parameters", blueprint.parameters)):
        for key, value in filled[part].items():
            if is_to_be_given(value):
                raise _invalid(_missing_value(blueprint, part, key, help_texts.get(key, "")))
    return filled if name is None else {**filled, "name": name}


def model_body(blueprint: Blueprint, connector_id: str, name: str | None = None) -> dict[str, Any]:
    """Return the body for `models/_register` of a model that uses this connector."""
    model = {"name": blueprint.model.get("name") or blueprint.name, **blueprint.model}
    if name is not None:
        model["name"] = name
    return {**model, "function_name": "remote", "connector_id": connector_id}


def is_to_be_given(value: object) -> bool:
    """Whether a value is a placeholder for one that the user has to give: `<region>`, `YOUR API KEY`."""
    return isinstance(value, str) and _PLACEHOLDER.fullmatch(value.strip()) is not None


def _check_base_urls(blueprint: Blueprint, parameters: Mapping[str, Any]) -> None:
    """Refuse an endpoint such as `http://host/v1` or `http://host/` where the connector's url goes on with `/v1`."""
    for action in blueprint.connector.get("actions") or ():
        match = _URL.match(str(action.get("url", "")))
        if match is None:
            continue
        name, path = match.groups()
        given = str(parameters.get(name, ""))
        doubled = next((part for part in _beginnings(path) if given.endswith(part)), None)
        if doubled is not None:
            raise _invalid(
                f"The parameter [{name}] ends with {doubled}, and {blueprint.name} adds {path} to it: "
                f"leave {doubled} out"
            )


def _beginnings(path: str) -> Iterator[str]:
    """Yield `/v1/chat`, `/v1` and `/` of the path `/v1/chat`."""
    while path:
        yield path
        path = path.rpartition("/")[0]
    yield "/"


def _known_parameters(blueprint: Blueprint) -> set[str]:
    """Return the parameters that the blueprint explains, sets, or has a placeholder for."""
    placeholders = _PARAMETER.findall(json.dumps(blueprint.connector))
    return {*blueprint.parameters, *(blueprint.connector.get("parameters") or {}), *placeholders}


def _missing_value(blueprint: Blueprint, part: str, key: str, help_text: str) -> str:
    kind = "credential" if part == "credential" else "parameter"
    explanation = f" ({help_text})" if help_text else ""
    return f"{blueprint.name} needs the {kind} [{key}]{explanation}"


def _parse(text: str) -> dict[str, Any]:
    """Return the JSON object that a text begins with, comments left out; ValueError if it begins with none.

    What follows the object is ignored: some public blueprints have one brace too many.
    """
    value, _ = _DECODER.raw_decode(_COMMENT.sub(lambda found: found[1] or " ", text).lstrip())
    if not isinstance(value, dict):
        raise ValueError("it is not an object")
    return value


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("an object has two members of one name")
    return members


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


_DECODER = json.JSONDecoder(object_pairs_hook=_members, parse_constant=_refuse_constant)


def _invalid(reason: str) -> RequestRefused:
    return RequestRefused(reason, status=400, type="illegal_argument_exception")


def _not_found(reason: str) -> RequestRefused:
    return RequestRefused(reason, status=404, type="status_exception")
