"""Requests and responses of the V2 protocol."""

import json
from typing import Any

WORDS = ["What", " is", " the", " capital", " of", " France?"]
# tests/testdata/generate-request.json of MLServer, with all that its client writes as null.
GENERATE: dict[str, Any] = {
    "id": None,
    "parameters": None,
    "inputs": [
        {
            "name": "prompt",
            "shape": [1],
            "datatype": "BYTES",
            "parameters": {"content_type": "str", "headers": None},
            "data": ["What is the capital of France?"],
        }
    ],
    "outputs": [{"name": "output", "parameters": None}],
}


def model_path(model: str, operation: str, version: str | None = None) -> str:
    versioned = "" if version is None else f"/versions/{version}"
    return f"/v2/models/{model}{versioned}/{operation}"


def events(text: str) -> list[dict[str, Any]]:
    """The events of a stream; heartbeats are skipped."""
    lines = [line for line in text.split("\n") if line and not line.startswith(":")]
    assert all(line.startswith("data: ") for line in lines)
    return [json.loads(line.removeprefix("data: ")) for line in lines]


def texts(responses: list[dict[str, Any]]) -> list[str]:
    """The text of each response, none of an empty one, which an ending may have."""
    found = ["".join(response["outputs"][0]["data"]) for response in responses]
    return [text for text in found if text]
