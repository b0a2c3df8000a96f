"""The OpenAPI documents of `/v2`, one of the server and one of each model: https://spec.openapis.org/oas/v3.1.0."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from opensearch_ml_stream.extensions.v2.http.documentation.inference_schemas import SCHEMAS, ref
from opensearch_ml_stream.extensions.v2.http.documentation.operations import OPERATIONS, VERSION, V2Operation
from opensearch_ml_stream.rest_handlers.openapi_schemas import STRING
from opensearch_ml_stream.rest_handlers.operation_description import Schema

PROMPT = "What is the capital of France?"
_TEXTS = {"role": "user", "type": "text"}  # of chat messages, as Seldon's LLM module writes them
_NUMBERS = {"BOOL": True, "FP16": 0.5, "FP32": 0.5, "FP64": 0.5}

Metadata = Mapping[str, Any]


def inference_request(metadata: Metadata) -> dict[str, Any]:
    """Return an example request with every input that the metadata names, and the first output."""
    inputs = [_tensor(entry) for entry in metadata.get("inputs") or ({"name": "prompt", "datatype": "BYTES"},)]
    outputs = [{"name": entry["name"]} for entry in (metadata.get("outputs") or ())[:1]]
    return {"inputs": inputs, **({"outputs": outputs} if outputs else {})}


def generate_request() -> dict[str, Any]:
    """Return a request of KServe's and Triton's generate extension."""
    return {"text_input": PROMPT}


def takes_text(metadata: Metadata) -> bool:
    """Whether a model takes and returns one text, so that a `text_input` can be sent to it."""
    sides = metadata.get("inputs") or (), metadata.get("outputs") or ()
    return all([entry["datatype"] for entry in side] == ["BYTES"] for side in sides)


def _tensor(entry: Metadata) -> dict[str, Any]:
    shape = [max(size, 1) for size in entry.get("shape") or (1,)]
    name, datatype = entry["name"], entry["datatype"]
    value = _TEXTS.get(name, PROMPT) if datatype == "BYTES" else _NUMBERS.get(datatype, 1)
    tensor = {"name": name, "shape": shape, "datatype": datatype, "data": [value] * _count(shape)}
    return {**tensor, "parameters": {"content_type": "str"}} if datatype == "BYTES" else tensor


def _count(shape: Sequence[int]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


Document = dict[str, Any]

_JSON = "application/json"


@dataclass(frozen=True, slots=True)
class DescribedModel:
    """A model by the name or id, and the version, that its documents are requested by, with its metadata."""

    name: str
    version: str | None
    metadata: Metadata

    @property
    def title(self) -> str:
        """What the documents call it."""
        return f"Model {self.name}" + (f" ({self.version})" if self.version else "")


def server_document(version: str) -> Document:
    """Return the document of every operation."""
    about = "REST protocol of inference servers (Open Inference Protocol, V2), for every model of this server."
    return _document("Data Plane", about, version, _paths(OPERATIONS, None), None)


def model_document(model: DescribedModel, version: str) -> Document:
    """Return the document of a model's operations, with its name in the paths, and its version if that is given."""
    own = [operation for operation in OPERATIONS if operation.path.startswith("/models/")]
    about = f"REST protocol to interact with {model.title}."
    return _document(f"Data Plane for {model.title}", about, version, _paths(own, model), model)


def _document(title: str, about: str, version: str, paths: Document, model: DescribedModel | None) -> Document:
    schemas = dict(SCHEMAS)
    if model is not None:
        used = _referenced(paths, schemas)
        schemas = {name: schema for name, schema in schemas.items() if name in used}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": title,
            "version": version,
            "description": about,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _referenced(part: object, schemas: Mapping[str, Schema]) -> set[str]:
    """Return the names of the schemas that a part of the document refers to, directly or not."""
    names: set[str] = set()
    waiting: list[object] = [part]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Mapping):
            name = str(one.get("$ref", "")).rpartition("/")[2]
            if name and name not in names:
                names.add(name)
                waiting.append(schemas[name])
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
    return names


def _paths(operations: Iterable[V2Operation], model: DescribedModel | None) -> Document:
    paths: Document = {}
    for operation in operations:
        for path in operation.paths:
            if model is not None:
                if model.version and VERSION not in path:
                    continue  # this path is for the newest version
                path = _filled(path, model)
            names = re.findall(r"{(\w+)}", path)
            parameters = [
                {"name": name, "in": "path", "required": True, "schema": {**STRING, "minLength": 1}} for name in names
            ]
            shared = {"parameters": parameters} if parameters else {}
            paths[path] = {**shared, operation.method: _operation(operation, path, model)}
    return paths


def _filled(path: str, model: DescribedModel) -> str:
    path = path.replace("{model_name}", quote(model.name, safe=""))
    return path.replace("{model_version}", quote(model.version, safe="")) if model.version else path


def _operation(operation: V2Operation, path: str, model: DescribedModel | None) -> Document:
    name = operation.path.replace("{model_name}", "model").strip("/").replace("/", "-") or "server-metadata"
    described: Document = {
        "operationId": ("version-" if "/versions/" in path else "") + name,
        "summary": operation.summary,
        "tags": [operation.group],
        "responses": {"200": _response(operation, model), "default": _ERROR},
    }
    if operation.description:
        described["description"] = operation.description
    if operation.body is not None:
        described["requestBody"] = {
            "required": operation.example is not None,
            "content": {_JSON: {"schema": operation.body, **_example(operation, model)}},
        }
    return described


_ERROR: Schema = {
    "description": "What is wrong: 404 for a model that is not there, 422 for a body that is no such request.",
    "content": {_JSON: {"schema": ref("InferenceErrorResponse")}},
}


def _response(operation: V2Operation, model: DescribedModel | None) -> Document:
    if operation.response is None:
        return {"description": "Done."}
    if operation.is_stream:
        return {"description": "A stream of responses.", "content": {"text/event-stream": {"schema": STRING}}}
    content: Document = {"schema": operation.response}
    if model is not None and operation.response == ref("MetadataModelResponse"):
        content["example"] = model.metadata
    return {"description": "The response.", "content": {_JSON: content}}


def _example(operation: V2Operation, model: DescribedModel | None) -> Document:
    if operation.example is None:
        return {}
    metadata: Metadata = {} if model is None else model.metadata
    is_text = operation.example == "text" and (model is None or takes_text(metadata))
    return {"example": generate_request() if is_text else inference_request(metadata)}
