"""Structured output: put a request's JSON Schema into a rendered body whose template has no placeholder for it.

It applies to actions with `supports_structured_output`. For each body field in FIELDS, the request parameter
`_<field>_json` (JSON text) replaces the field, and `_<field>_additions_json` is merged into it key by key. All other
members of the body keep their text.
"""

import json
from collections.abc import Mapping

from opensearch_ml_stream.connectors.documents import Action
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.syntax import json_members, jsontext

FIELDS = ("response_format", "generationConfig", "toolConfig")


def apply_structured_output(action: Action, request: Mapping[str, str], body: str) -> str:
    """Return the body with the fields that the request's parameters (never the connector's) set.

    InvalidRequest names the parameter that is not JSON, or the body or field that is not a JSON object.
    """
    if not action.supports_structured_output:
        return body
    fields = [field for field in FIELDS if f"_{field}_json" in request or f"_{field}_additions_json" in request]
    if not fields:
        return body
    members = _members(body, "The connector's request_body")
    for field in fields:
        name = f"_{field}_json"
        if name in request:
            members[field] = _json(request[name], name)
        name = f"_{field}_additions_json"
        if name in request:
            own = _members(members.get(field, "{}"), f"The field {field} of the connector's request_body")
            members[field] = json_members.join_members({**own, **_members(request[name], f"Parameter [{name}]")})
    return json_members.join_members(members)


def _json(text: str, name: str) -> str:
    if not jsontext.is_json(text):
        raise InvalidRequest(f"Parameter [{name}] must be JSON text")
    return text


def _members(text: str, what: str) -> dict[str, str]:
    try:
        return dict(json_members.split_members(text))
    except (json.JSONDecodeError, RecursionError):
        raise InvalidRequest(f"{what} must be a JSON object to take structured output") from None
