"""Make the parameters of a prediction of a runtime of a V2 request, which the runtime gets as the client wrote it."""

from collections.abc import Sequence
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.predict.model_inputs import MESSAGES, PROMPTS, ChatForm
from opensearch_ml_stream.extensions.runtimes.protocol.runtime_request import INFERENCE_REQUEST
from opensearch_ml_stream.extensions.v2.face import (
    HEADERS,
    InferenceRequest,
    RequestedOutput,
    Tensor,
    chat_messages,
    is_chat,
    json_text,
    tensor_object,
    texts,
    to_parameter,
)


def inference_parameters(request: InferenceRequest, id: str, *, has_fallbacks: bool) -> dict[str, str]:
    """Return the parameters; `id` is that of the request, or the one it gets.

    If remote models may have to answer in the runtime's place, its text or chat and its own parameters are among them.
    """
    whole: dict[str, Any] = {"id": id}
    if request.parameters:
        whole["parameters"] = request.parameters
    whole["inputs"] = _inputs(request)
    if request.outputs:
        whole["outputs"] = [_output(output) for output in request.outputs]
    return {**(_remote_parameters(request) if has_fallbacks else {}), INFERENCE_REQUEST: json_text(whole)}


def _inputs(request: InferenceRequest) -> Sequence[Any]:
    if request.written_inputs is not None:
        return request.written_inputs
    return [{**tensor_object(tensor), "shape": list(tensor.shape)} for tensor in request.inputs]


def _output(output: RequestedOutput) -> dict[str, Any]:
    return {"name": output.name, **({"parameters": output.parameters} if output.parameters else {})}


def _remote_parameters(request: InferenceRequest) -> dict[str, str]:
    """Return what connectors' templates take of such a request, as far as it has a text or a chat."""
    own = {name: to_parameter(value) for name, value in request.parameters.items() if name != HEADERS}
    tensors = {tensor.name: tensor for tensor in request.inputs}
    try:
        if is_chat(tensors):
            messages = chat_messages(tensors, ChatForm())
            own[MESSAGES] = json_text(messages)
            content = messages[0]["content"] if len(messages) == 1 else None
            return {**own, **_text(content)} if isinstance(content, str) else own
        found = next((tensor for tensor in request.inputs if tensor.datatype == "BYTES"), None)
        return {**own, **_only_text(found)}
    except InvalidRequest:  # the runtime may take it all the same
        return own


def _only_text(tensor: Tensor | None) -> dict[str, str]:
    found = [] if tensor is None else texts(tensor)
    return _text(found[0]) if len(found) == 1 else {}


def _text(text: str) -> dict[str, str]:
    return dict.fromkeys(PROMPTS, text)
