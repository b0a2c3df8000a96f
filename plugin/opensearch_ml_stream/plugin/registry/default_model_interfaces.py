"""Interfaces that ML Commons itself gives to models of some AWS services (ML Commons contract, section 1.3)."""

from collections.abc import Mapping

from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.plugin.registry.stored_documents import Json

_STRING: Json = {"type": "string"}
_STRINGS: Json = {"type": "array", "items": {"type": "string"}}

_INPUTS: Mapping[str, Json] = {"inputs": _STRING}
_BEDROCK: Mapping[str, Mapping[str, Json]] = {
    "ai21.j2-mid-v1": _INPUTS,
    "anthropic.claude-3-sonnet-20240229-v1:0": _INPUTS,
    "anthropic.claude-v2": _INPUTS,
    "cohere.embed-english-v3": {"texts": _STRINGS},
    "cohere.embed-multilingual-v3": {"texts": _STRINGS},
    "amazon.titan-embed-text-v1": {"inputText": _STRING},
    "amazon.titan-embed-image-v1": {"inputText": _STRING, "inputImage": _STRING},
}


def default_interface(connector: Json) -> dict[str, str] | None:
    """Return the interface to store for a model of this stored connector; None where there is no preset."""
    parameters = connector.get("parameters") or {}
    if connector.get("protocol") != "aws_sigv4":
        return None
    properties: Mapping[str, Json] | None = None
    match parameters.get("service_name"):
        case "bedrock":
            properties = _BEDROCK.get(parameters.get("model", ""))
        case "comprehend" if parameters.get("api_name") == "DetectDominantLanguage":
            properties = {"Text": _STRING}
        case "textract":
            properties = {"bytes": _STRING}
        case _:
            pass
    return None if properties is None else {"input": jsontext.dumps(_schema(properties))}


def _schema(properties: Mapping[str, Json]) -> Json:
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "object", "properties": {"parameters": parameters}, "required": ["parameters"]}
