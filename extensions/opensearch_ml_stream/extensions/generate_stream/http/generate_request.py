"""Requests of `/generate-stream`: a prompt, and beside it the members that vLLM's demonstration server takes.

    {"prompt": "Why is the sky blue?", "max_tokens": 100, "temperature": 0.2}

All but `prompt` and `stream` are parameters of the prediction, whatever their names.
"""

from collections.abc import Mapping
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.extensions.v2.face import InferenceRequest, Tensor


def read_body(body: bytes) -> InferenceRequest:
    """Return the request that a JSON body makes; InvalidRequest without a prompt."""
    return read_members(jsontext.load_object(body))


def read_members(members: Mapping[str, Any]) -> InferenceRequest:
    """Return the request with these members, of a body or of a query; what is null in it is absent."""
    parameters = {name: value for name, value in members.items() if value is not None}
    prompt = parameters.pop("prompt", "")
    if not isinstance(prompt, str) or not prompt:
        raise InvalidRequest("[prompt] must be a string that is not empty")
    if parameters.pop("stream", True) not in (True, "true"):
        raise InvalidRequest("[stream] cannot be false here; for a response in one piece, use _predict of the model")
    tensor = Tensor("prompt", "BYTES", (1,), (prompt,), {"content_type": "str"})
    return InferenceRequest((tensor,), parameters=parameters)
