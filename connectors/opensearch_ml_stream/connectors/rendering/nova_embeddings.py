"""Nova embeddings (Amazon Nova multimodal): remove the body's sections for modalities that the request does not fill.

The connector's template has a section for every modality (text, image, video, audio), and Bedrock refuses a section
without content.
https://docs.aws.amazon.com/nova/latest/userguide/embeddings-schema.html
"""

from collections.abc import Mapping
from typing import Any

from opensearch_ml_stream.connectors.syntax import json_members, jsontext

NOVA_EMBEDDINGS = "amazon.nova-2-multimodal-embeddings-v1:0"
_SECTION = "singleEmbeddingParams"


def clean_nova_body(connector_parameters: Mapping[str, str], body: str) -> str:
    """Return the body without empty sections if the connector's model is NOVA_EMBEDDINGS, else the body as it is."""
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
