"""Body edits: change a rendered request body, in ML Commons' order.

Input processors first, then structured output, then the removal of empty sections for Nova's embeddings.
"""

import json
from collections.abc import Mapping
from typing import Any

from opensearch_ml_stream.connectors.documents import Action
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.processors.chain import compile_processors
from opensearch_ml_stream.connectors.syntax import json_members, jsontext

FIELDS = ("response_format", "generationConfig", "toolConfig")


def apply_structured_output(action: Action, request: Mapping[str, str], body: str) -> str:
    """Return the body with a request's JSON Schema, where the template has no placeholder for it.

    It applies to actions with `supports_structured_output`. For each body field in FIELDS, the request parameter
    `_<field>_json` (JSON text), never the connector's, replaces the field, and `_<field>_additions_json` is merged into
    it key by key. All other members of the body keep their text.

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


NOVA_EMBEDDINGS = "amazon.nova-2-multimodal-embeddings-v1:0"
_SECTION = "singleEmbeddingParams"


def clean_nova_body(connector_parameters: Mapping[str, str], body: str) -> str:
    """Return the body without empty sections if the connector's model is NOVA_EMBEDDINGS, else the body as it is.

    The connector's template has a section for every modality (text, image, video, audio), and Bedrock refuses a section
    without content (https://docs.aws.amazon.com/nova/latest/userguide/embeddings-schema.html).
    """
    if connector_parameters.get("model") != NOVA_EMBEDDINGS:
        return body
    value = jsontext.value_or_text(body)
    params = value.get(_SECTION) if isinstance(value, dict) else None
    if not isinstance(params, dict):
        return body
    kept = {name: section for name, section in params.items() if not _is_empty(name, section)}
    return body if len(kept) == len(params) else json_members.set_members(body, {_SECTION: kept})


def _is_empty(name: str, section: Any) -> bool:
    if not isinstance(section, dict):
        return False
    if name == "text":
        return "value" in section and section["value"] is None
    source = section.get("source")
    is_media = name in ("image", "video", "audio")
    return is_media and isinstance(source, dict) and "bytes" in source and source["bytes"] is None


INPUT_PROCESSORS = "input_processors"


def may_edit_body(action: Action, connector_parameters: Mapping[str, str]) -> bool:
    """Return whether the connector's own configuration may require edits.

    A request that sends `input_processors` needs edits in any case.
    """
    return (
        INPUT_PROCESSORS in connector_parameters
        or action.supports_structured_output
        or connector_parameters.get("model") == NOVA_EMBEDDINGS
    )


def edit_body(
    action: Action, connector_parameters: Mapping[str, str], request_parameters: Mapping[str, str], body: str
) -> str:
    """Return the edited body. InvalidRequest if an edit is wrongly configured or does not fit the body."""
    processors = request_parameters.get(INPUT_PROCESSORS, connector_parameters.get(INPUT_PROCESSORS))
    if body and processors:
        body = compile_processors(processors, INPUT_PROCESSORS).run_on_text(body)
    body = apply_structured_output(action, request_parameters, body)
    return clean_nova_body(connector_parameters, body)
