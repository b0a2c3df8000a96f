"""What a model takes and gives, as the tensors of its metadata."""

from typing import Any

from opensearch_ml_stream.connectors.predict.model_inputs import ModelInputs
from opensearch_ml_stream.extensions.v2.protocol.json_responses import STRING

PLATFORM = "remote"

_NUMBERS = {"name": "output", "datatype": "FP32", "shape": [-1, -1]}


def metadata_tensors(model: ModelInputs) -> dict[str, Any]:
    """Return `{"inputs": [...], "outputs": [...]}`: a text, or several, or the messages of a chat; -1 is any length."""
    if model.takes_texts:
        return {"inputs": [_strings("text")], "outputs": [_NUMBERS]}
    inputs = [_strings("text" if model.prompt is None else model.prompt)] if model.prompt or model.chat else []
    return {"inputs": inputs or [_strings(name) for name in sorted(model.free)], "outputs": [_strings("output")]}


def _strings(name: str) -> dict[str, Any]:
    return {"name": name, "datatype": "BYTES", "shape": [-1], "parameters": STRING}
