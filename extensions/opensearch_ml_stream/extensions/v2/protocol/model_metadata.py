"""What a model takes and gives, as the tensors of its metadata."""

from typing import Any

from opensearch_ml_stream.connectors.predict.model_inputs import TEXT, ModelInputs
from opensearch_ml_stream.extensions.v2.protocol.json_responses import STRING
from opensearch_ml_stream.extensions.v2.protocol.predict_inputs import DOCUMENTS, QUERY

PLATFORM = "remote"

_NUMBERS = {"name": "output", "datatype": "FP32", "shape": [-1, -1]}


def metadata_tensors(model: ModelInputs) -> dict[str, Any]:
    """Return `{"inputs": [...], "outputs": [...]}`; -1 is any length.

    Parameters are shown where there is no place for a text or a chat: those without a default, if there are any.
    """
    if model.takes_texts:
        return {"inputs": [_strings(TEXT)], "outputs": [_NUMBERS]}
    if model.ranks:
        return {"inputs": [_strings(QUERY), _strings(DOCUMENTS)], "outputs": [_NUMBERS]}
    inputs = [_strings(model.prompt or TEXT)] if model.prompt or model.chat else []
    named = [_strings(name) for name in sorted(model.needed or model.free)]
    return {"inputs": inputs or named, "outputs": [_strings("output")]}


def _strings(name: str) -> dict[str, Any]:
    return {"name": name, "datatype": "BYTES", "shape": [-1], "parameters": STRING}
