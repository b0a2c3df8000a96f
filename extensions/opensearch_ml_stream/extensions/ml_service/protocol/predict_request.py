"""Read `MlPredictModelStreamRequest`: the model, and the parameters of its prediction.

    model_id = 1; ml_predict_model_stream_request_body = 3 { parameters = 1 {
        messages = 1 (repeated) { role = 1; content = 2 }; inputs = 2; question = 3; x_llm_interface = 4 } }

Source: opensearch-protobufs 1.6, `protos/schemas/common.proto`; ML Commons 3.8, `ProtoRequestConverter`: a field that
is not set is no parameter, one that is set to "" is.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.protobuf_wire import FieldReader, text
from opensearch_ml_stream.connectors.syntax import jsontext

_MODEL_ID, _BODY = 1, 3
_PARAMETERS = 1
_MESSAGES = 1
_STRINGS = {2: "inputs", 3: "question", 4: "_llm_interface"}
_MESSAGE_STRINGS = {1: "role", 2: "content"}


@dataclass(frozen=True, slots=True)
class PredictRequest:
    """The prediction that is asked for."""

    model_id: str
    parameters: Mapping[str, str]


def read_predict_request(data: bytes) -> PredictRequest:
    """Return what a serialized request asks for. InvalidRequest names what is missing or wrong, never its value."""
    reader = FieldReader(len(data))
    fields = list(reader.fields(data))
    model_ids = [content for number, content in fields if number == _MODEL_ID]
    model_id = text(model_ids[-1], "model_id") if model_ids else ""
    if not model_id:
        raise InvalidRequest("model_id is required")
    body = _message(fields, _BODY, "MlPredictModelStreamRequest must have request body")
    parameters = _message(list(reader.fields(body)), _PARAMETERS, "Request body must have parameters")
    return PredictRequest(model_id, _read_parameters(reader, parameters))


def _message(fields: list[tuple[int, bytes]], wanted: int, missing: str) -> bytes:
    """Return a message that a field holds; of several the fields count together, as protobuf has it."""
    messages = [content for number, content in fields if number == wanted]
    if not messages:
        raise InvalidRequest(missing)
    return messages[0] if len(messages) == 1 else b"".join(messages)


def _read_parameters(reader: FieldReader, data: bytes) -> dict[str, str]:
    messages: list[dict[str, str]] = []
    parameters: dict[str, str] = {}
    for number, content in reader.fields(data):
        if number == _MESSAGES:
            messages.append(_read_strings(reader, content, _MESSAGE_STRINGS))
        elif (name := _STRINGS.get(number)) is not None:
            parameters[name] = text(content, name)
    if messages:
        parameters["messages"] = jsontext.JsonText(jsontext.dumps(messages))
    return parameters


def _read_strings(reader: FieldReader, data: bytes, names: Mapping[int, str]) -> dict[str, str]:
    return {names[number]: text(content, names[number]) for number, content in reader.fields(data) if number in names}
