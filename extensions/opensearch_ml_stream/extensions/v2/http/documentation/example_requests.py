"""Requests that a model takes, made from its metadata: they can be sent as they stand."""

from collections.abc import Mapping, Sequence
from typing import Any

PROMPT = "What is the capital of France?"
_TEXTS = {"role": "user", "type": "text"}  # of chat messages, as Seldon's LLM module writes them
_NUMBERS = {"BOOL": True, "FP16": 0.5, "FP32": 0.5, "FP64": 0.5}

Metadata = Mapping[str, Any]


def inference_request(metadata: Metadata) -> dict[str, Any]:
    """Return a request with every input that the metadata names, and the first output."""
    inputs = [_tensor(entry) for entry in metadata.get("inputs") or ({"name": "prompt", "datatype": "BYTES"},)]
    outputs = [{"name": entry["name"]} for entry in (metadata.get("outputs") or ())[:1]]
    return {"inputs": inputs, **({"outputs": outputs} if outputs else {})}


def generate_request() -> dict[str, Any]:
    """Return a request of KServe's and Triton's generate extension."""
    return {"text_input": PROMPT}


def takes_text(metadata: Metadata) -> bool:
    """Whether a model makes a text of a text, so that a `text_input` can be sent to it."""
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
