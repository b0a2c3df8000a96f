"""Requests as the sidecar sends them to the process of a model."""

from collections.abc import AsyncIterator
from importlib import import_module
from typing import Any


def text(name: str, *texts: str) -> dict[str, Any]:
    """Return a tensor with texts."""
    return {
        "name": name, "shape": [len(texts)], "datatype": "BYTES", "data": list(texts),
        "parameters": {"content_type": "str"},
    }  # fmt: skip


def request(*tensors: dict[str, Any], **parameters: Any) -> Any:
    """Return a request with these tensors and parameters."""
    body = {"id": "r1", "inputs": list(tensors), "parameters": parameters}
    return import_module("mlserver.types").InferenceRequest.model_validate(body)


async def payloads(*requests: Any) -> AsyncIterator[Any]:
    """Yield requests, as predict_stream takes them."""
    for one in requests:
        yield one


def texts_of(response: Any) -> dict[str, str]:
    """Return each output's text by its name."""
    return {output.name: _first(output.data) for output in response.outputs}


def ends_of(response: Any) -> tuple[str, dict[str, int]] | None:
    """Return the finish reason and the usage of a response, None without them."""
    given = response.parameters.model_dump() if response.parameters is not None else {}
    return (given["finish_reason"], given["usage"]) if "finish_reason" in given else None


def _first(data: Any) -> str:
    (text,) = getattr(data, "root", data)
    return text.decode() if isinstance(text, bytes) else str(text)
