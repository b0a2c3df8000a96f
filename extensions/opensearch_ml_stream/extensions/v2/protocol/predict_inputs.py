"""Make the predict inputs of a V2 request: which tensor fills which parameter of a connector's templates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.predict.inputs import RemoteInput, TextDocsInput
from opensearch_ml_stream.connectors.predict.model_inputs import TENSORS, ChatForm, ModelInputs
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.extensions.v2.protocol.chat_messages import CHAT_TENSORS, chat_messages, is_chat
from opensearch_ml_stream.extensions.v2.protocol.messages import InferenceRequest, Tensor
from opensearch_ml_stream.extensions.v2.protocol.tensor_values import (
    MAX_TEXTS,
    json_tensors,
    parameter,
    texts,
    to_parameter,
)

MAX_PREDICTIONS = 1_000  # of one request
MAX_PARAMETERS = 10_000  # of one request
MAX_REPEATED_PARAMETERS = 100_000  # of all predictions of one request, each of which has all of them
MAX_REPEATED_CHARS = 32 * 1024 * 1024
LLM_PARAMETERS = "llm_parameters"
HEADERS = "headers"

# Members of `parameters` that are about the request: not what the model is to do.
_NOT_OF_THE_MODEL = frozenset({HEADERS, "content_type", "stream", LLM_PARAMETERS})


@dataclass(frozen=True, slots=True)
class PredictInputs:
    """The predictions that a request asks for, in order: several if its text tensor has several elements."""

    inputs: Sequence[RemoteInput | TextDocsInput]
    is_chat: bool = False


def predict_inputs(request: InferenceRequest, model: ModelInputs) -> PredictInputs:
    """Return the predict inputs of a request. InvalidRequest for tensors that the model cannot take."""
    parameters = _caller_parameters(request.parameters, model)
    if not request.inputs:
        raise InvalidRequest(f"The request has no inputs. The model takes {model.describe()}")
    if model.takes_tensors:
        return PredictInputs([RemoteInput({**parameters, TENSORS: json_tensors(request.inputs)})])
    tensors = {tensor.name: tensor for tensor in request.inputs}
    if len(tensors) < len(request.inputs):
        raise InvalidRequest("Two tensors of the request have the same name")
    in_chat = is_chat(tensors) and (model.chat is not None or model.prompt is not None)
    left = _fill_named(parameters, tensors, model, CHAT_TENSORS if in_chat else ())
    if in_chat:
        _check_all_used(left, model)
        return PredictInputs([RemoteInput({**parameters, **_chat(tensors, model)})], is_chat=True)
    text = next((tensor for tensor in left if tensor.datatype == "BYTES"), None)
    _check_all_used([tensor for tensor in left if tensor is not text], model)
    return PredictInputs([RemoteInput(parameters)] if text is None else _of_text(text, parameters, model))


def _caller_parameters(given: Mapping[str, Any], model: ModelInputs) -> dict[str, str]:
    """Return the parameters of a request as those of a predict request: `llm_parameters` count before the others.

    The request's headers are among them if the template has a place for them.
    """
    own = given.get(LLM_PARAMETERS, {})
    if isinstance(own, str):  # gRPC has no objects
        own = jsontext.parse(own, LLM_PARAMETERS)
    if not isinstance(own, Mapping):
        raise InvalidRequest("parameters.llm_parameters must be an object")
    if len(given) + len(own) > MAX_PARAMETERS:
        raise InvalidRequest(f"A request may have {MAX_PARAMETERS} parameters")
    parameters = {
        name: to_parameter(value)
        for name, value in {**given, **own}.items()
        if value is not None and name not in _NOT_OF_THE_MODEL
    }
    if HEADERS in model.free and HEADERS in given:
        parameters[HEADERS] = to_parameter(given[HEADERS])
    return parameters


def _fill_named(
    parameters: dict[str, str], tensors: Mapping[str, Tensor], model: ModelInputs, aside: Sequence[str]
) -> list[Tensor]:
    """Give tensors that are named as parameters of the template to these; return all others but those `aside`.

    A text never takes the place of a parameter that the connector sets, which may be a template around the prompt.
    """
    left: list[Tensor] = []
    for name, tensor in tensors.items():
        if name == "stream":  # a tensor of Triton's clients; here the route decides
            continue
        is_text = tensor.datatype == "BYTES"
        is_named = name in model.free and name != model.prompt if is_text else name in model.names
        if is_named and tensor.data and name not in aside:
            parameters[name] = parameter(tensor)
        elif name not in aside:
            left.append(tensor)
    return left


def _check_all_used(left: Sequence[Tensor], model: ModelInputs) -> None:
    if left:
        raise InvalidRequest(
            f"The model cannot take the tensor {left[0].name} ({left[0].datatype}). It takes {model.describe()}"
        )


def _of_text(tensor: Tensor, parameters: dict[str, str], model: ModelInputs) -> Sequence[RemoteInput | TextDocsInput]:
    found = texts(tensor, MAX_TEXTS if model.takes_texts else MAX_PREDICTIONS)
    if not found:
        raise InvalidRequest(f"Tensor {tensor.name} has no text")
    if model.takes_texts:
        return [TextDocsInput(tuple(found), parameters)]
    _check_repeated(parameters, len(found))
    filled = [model.fill_text(one) for one in found]
    if filled[0]:
        return [RemoteInput({**parameters, **own}) for own in filled]
    raise InvalidRequest(
        f"The model's connector has no parameter for a text. It takes {model.describe()}. If a parameter of another "
        "name is for a text, name it in the model's _sidecar.v2.prompt"
    )


def _check_repeated(parameters: Mapping[str, str], times: int) -> None:
    """Raise InvalidRequest for more parameters, or longer ones, than can be sent with each of so many texts."""
    size = sum(map(len, parameters.values()))
    if times > 1 and (times * len(parameters) > MAX_REPEATED_PARAMETERS or times * size > MAX_REPEATED_CHARS):
        raise InvalidRequest(f"The request's parameters are too many, or too long, for each of {times} texts")


def _chat(tensors: Mapping[str, Tensor], model: ModelInputs) -> dict[str, str]:
    """Return the parameter of a chat's messages; the text of its only message if the model takes no chat."""
    if model.chat is not None:
        return model.chat.fill(chat_messages(tensors, model.chat))
    messages = chat_messages(tensors, ChatForm())
    if model.prompt is None or len(messages) > 1 or not isinstance(messages[0]["content"], str):
        raise InvalidRequest(f"The model cannot take a chat of several messages. It takes {model.describe()}")
    return {model.prompt: messages[0]["content"]}
