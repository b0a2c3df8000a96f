"""Schemas of the V2 protocol's messages, derived from our own classes of them where there are such.

Source: kserve/open-inference-protocol, `open_inference_rest.yaml` and `generate_rest.yaml`. The names are theirs.
"""

from collections.abc import Mapping
from typing import Any

from opensearch_ml_stream.extensions.v2.protocol.messages import DATATYPES, InferenceRequest, RequestedOutput, Tensor
from opensearch_ml_stream.rest_handlers.openapi_schemas import OBJECT, STRING, value_schema
from opensearch_ml_stream.rest_handlers.operation_description import FLAG, Schema


def ref(name: str) -> Schema:
    """Return a reference to one of the schemas."""
    return {"$ref": f"#/components/schemas/{name}"}


def list_of(schema: Schema) -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "items": schema}


def inlined(schema: Any) -> Any:
    """Return a schema with what it refers to in place of the references."""
    if isinstance(schema, Mapping):
        if "$ref" in schema:
            return inlined(SCHEMAS[schema["$ref"].rpartition("/")[2]])
        return {name: inlined(value) for name, value in schema.items()}
    return [inlined(value) for value in schema] if isinstance(schema, list) else schema


_DATATYPE: Schema = {"enum": list(DATATYPES)}
_REQUEST_PARAMETERS: Schema = {
    "type": "object",
    "description": "Become parameters of the prediction, those in `llm_parameters` too; null is as if absent.",
}
_RESPONSE_PARAMETERS: Schema = {
    "type": "object",
    "description": "The last response of a stream, and a whole one, have `finish_reason` and `usage` here.",
    "properties": {"finish_reason": STRING, "native_finish_reason": STRING, "usage": OBJECT},
}


def _tensor(shape: str) -> Schema:
    return value_schema(
        Tensor,
        ("name", "shape", "datatype", "data"),
        datatype=_DATATYPE,
        shape={**list_of({"type": "integer", "minimum": 0}), "description": shape},
        data={"type": "array", "description": "The elements, flat or nested, in row-major order."},
        parameters={
            "type": "object",
            "description": "`content_type` says how to decode the data: `str` is text.",
            "properties": {"content_type": STRING},
        },
    )


SCHEMAS: Mapping[str, Schema] = {
    "InferenceRequest": value_schema(
        InferenceRequest,
        ("inputs",),
        id={**STRING, "description": "Comes back in every response; one is made if it is absent."},
        inputs={**list_of(ref("RequestInput")), "minItems": 1},
        parameters=_REQUEST_PARAMETERS,
        outputs={**list_of(ref("RequestOutput")), "description": "The first gives the output its name."},
    ),
    "RequestInput": _tensor("How many elements there are in each dimension."),
    "RequestOutput": value_schema(RequestedOutput, ("name",)),
    "InferenceResponse": {
        "type": "object",
        "properties": {
            "model_name": STRING,
            "model_version": STRING,
            "id": STRING,
            "parameters": _RESPONSE_PARAMETERS,
            "outputs": list_of(ref("ResponseOutput")),
        },
        "required": ["model_name", "outputs"],
    },
    "ResponseOutput": _tensor("[1, 1] for text."),
    "GenerateRequest": {
        "type": "object",
        "description": "The request of KServe's and Triton's generate extension. Further fields are parameters.",
        "properties": {
            "text_input": {"anyOf": [STRING, list_of(STRING)], "description": "The prompt."},
            "id": STRING,
            "parameters": _REQUEST_PARAMETERS,
        },
        "required": ["text_input"],
    },
    "GenerateResponse": {
        "type": "object",
        "description": "The response to a GenerateRequest.",
        "properties": {
            "model_name": STRING,
            "model_version": STRING,
            "id": STRING,
            "text_output": STRING,
            "reasoning": STRING,
            "tool_calls": list_of(OBJECT),
            "details": {"type": "object", "properties": {"finish_reason": STRING, "usage": OBJECT}},
            "parameters": _RESPONSE_PARAMETERS,
        },
        "required": ["model_name", "text_output"],
    },
    "ServerLiveResponse": {"type": "object", "properties": {"live": {"const": True}}, "required": ["live"]},
    "ServerReadyResponse": {"type": "object", "properties": {"ready": {"const": True}}, "required": ["ready"]},
    "ModelReadyResponse": {
        "type": "object",
        "properties": {"name": STRING, "ready": {"const": True}},
        "required": ["name", "ready"],
    },
    "MetadataServerResponse": {
        "type": "object",
        "properties": {"name": STRING, "version": STRING, "extensions": list_of(STRING)},
        "required": ["name", "version", "extensions"],
    },
    "MetadataModelResponse": {
        "type": "object",
        "properties": {
            "name": STRING,
            "versions": list_of(STRING),
            "platform": STRING,
            "inputs": list_of(ref("MetadataTensor")),
            "outputs": list_of(ref("MetadataTensor")),
            "parameters": OBJECT,
        },
        "required": ["name", "platform"],
    },
    "MetadataTensor": {
        "type": "object",
        "properties": {
            "name": STRING,
            "datatype": _DATATYPE,
            "shape": {**list_of({"type": "integer", "minimum": -1}), "description": "-1: any number of elements."},
            "parameters": OBJECT,
        },
        "required": ["name", "datatype", "shape"],
    },
    "RepositoryIndexRequest": {
        "type": "object",
        "properties": {"ready": {**FLAG, "description": "Whether to list only models that can be called."}},
    },
    "RepositoryIndexResponse": list_of(
        {
            "type": "object",
            "properties": {
                "name": STRING,
                "version": STRING,
                "state": {"enum": ["UNKNOWN", "READY", "UNAVAILABLE", "LOADING", "UNLOADING"]},
                "reason": STRING,
            },
            "required": ["name", "state", "reason"],
        }
    ),
    "InferenceErrorResponse": {
        "type": "object",
        "properties": {
            "error": STRING,
            "detail": {**list_of(OBJECT), "description": "Of status 422: what is wrong with the body, and where."},
        },
        "required": ["error"],
    },
}
"""Every schema of the documents, by name."""
