"""Requests from JSON and responses to JSON, in the types of mlserver if it is installed, else in ours."""

import importlib
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from opensearch_ml_stream.runtimes.interface import json_bytes
from opensearch_ml_stream.runtimes.interface.alias import install_mlserver_alias
from opensearch_ml_stream.runtimes.interface.types import InferenceResponse, TensorData
from opensearch_ml_stream.runtimes.interface.types.base import BaseModel, present


class MalformedRequest(ValueError):
    """A request that is not JSON, or does not fit the protocol; MLServer answers 422 to it."""

    status_code = 422


def load_types() -> ModuleType:
    """Import the types in use: `mlserver.types` where that package is installed, else ours under that name."""
    install_mlserver_alias()
    return importlib.import_module("mlserver.types")


def decode_request(types: ModuleType, payload: bytes) -> Any:
    """Make the inference request of its JSON; MalformedRequest says what is wrong, and where."""
    try:
        return types.InferenceRequest.model_validate(json_bytes.loads(payload))
    except ValueError as error:  # pydantic's ValidationError is one, as ours and JSON's
        raise MalformedRequest(explanation(error)) from error


def encode_response(
    response: Any, *, model_name: str, model_version: str | None = None, request_id: str | None = None
) -> bytes:
    """Encode a response as MLServer's REST port does.

    A name and a version that it lacks are the model's. The identifier is the request's: MLServer replaces the
    response's own; only without a request's does that stay. `parameters` are always there. Nothing is changed in the
    response itself. TypeError for anything but a response, or for values without a form in JSON.
    """
    if type(response) is InferenceResponse:
        given = present(response)
    elif hasattr(response, "model_dump"):
        given = response.model_dump(exclude_unset=True, exclude_none=True)
    elif isinstance(response, Mapping):
        given = dict(response)
    else:
        kind = type(response)
        raise TypeError(f"The model returned {kind.__module__}.{kind.__qualname__}, not an InferenceResponse")
    encoded = {"model_name": given.pop("model_name", None) or model_name}
    version = given.pop("model_version", None) or model_version
    if version is not None:
        encoded["model_version"] = version
    identifier = given.pop("id", None)
    if request_id is not None or identifier is not None:
        encoded["id"] = identifier if request_id is None else request_id
    encoded["parameters"] = given.pop("parameters", None) or {}
    encoded.update(given)
    return json_bytes.dumps(encoded, _plain)


def _plain(value: Any) -> Any:
    if type(value) is TensorData:
        return value.root
    if isinstance(value, BaseModel):
        return present(value)
    if isinstance(value, bytes):
        return value.decode()
    return json_bytes.plain(value)


def explanation(error: ValueError) -> str:
    """Return a line that says what is wrong with a request, and where, from pydantic's error, ours, or JSON's."""
    errors = getattr(error, "errors", None)
    if errors is None:
        return f"Invalid JSON: {error}"
    places = [(".".join(map(str, problem["loc"])), problem["msg"]) for problem in errors()]
    return "; ".join(f"{place}: {message}" if place else message for place, message in places)
