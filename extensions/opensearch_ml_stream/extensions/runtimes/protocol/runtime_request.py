"""Requests to runtimes: the V2 inference request that is made of the parameters of a predict request.

    "inference_request": a whole request in JSON   is passed on; all other parameters are ignored then
    "inputs", "prompt": a text                     a BYTES tensor of that name, shape [1]; several texts: [n]
    "inputs": tensors in JSON                      as they are
    "messages": [{"role", "content"}, ...]         BYTES tensors role and content, [n], as Seldon's LLM module has them
    "text_docs": [texts]                           a BYTES tensor, [n]; `query_text` beside it one of [1]
    "question": a text                             without those above a BYTES tensor, [1]; so is `context` beside it
    any other                                      a parameter: what is JSON as the number, object ... that it is

Everything takes time linear in the parameters.
"""

from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from opensearch_ml_stream.connectors.conversation.conversation import OPTION_NAMES
from opensearch_ml_stream.connectors.documents import Action
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.predict.inputs import (
    PredictInput,
    QuestionAnsweringInput,
    RemoteInput,
    TextSimilarityInput,
)
from opensearch_ml_stream.connectors.predict.model_inputs import MESSAGES, PROMPTS, ChatForm, ModelInputs
from opensearch_ml_stream.connectors.predict.post_process import OUTPUT_PROCESSORS, RESPONSE_FILTER
from opensearch_ml_stream.connectors.predict.pre_process import STEP_SIZE, Step, split_texts, step_size
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.connectors.stream_spec import Streaming
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.connectors.syntax.jsontext import JsonText
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

INFERENCE_REQUEST = "inference_request"
TEXT_DOCS = "text_docs"
QUERY_TEXT = "query_text"
MAX_MESSAGES = 5_000

# Members of a conversation that become tensors and parameters.
_OF_CONVERSATIONS = frozenset({"prompt", MESSAGES, *OPTION_NAMES})
CONVERSATION_INPUTS = ModelInputs(_OF_CONVERSATIONS, _OF_CONVERSATIONS, "prompt", ChatForm(), takes_texts=False)

_STRING = {"content_type": "str"}
_COLUMNS = ("type", "tool_calls", "tool_call_id", "name")  # of messages that have them
_TENSOR_MEMBERS = {"name", "shape", "datatype", "data"}

# About the request itself, or for this server: not for the runtime.
_NOT_OF_THE_RUNTIME = frozenset({"_llm_interface", "stream", RESPONSE_FILTER, OUTPUT_PROCESSORS, STEP_SIZE})

_Object = dict[str, Any]
_NO_HEADERS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class RuntimeAction:
    """The action of a connector whose URL is a runtime's, without templates and credentials.

    `parameters` are the connector's, under the request's.
    """

    action: Action
    parameters: Mapping[str, str]

    def render(self, request: Mapping[str, str], stream: Streaming | None = None) -> ProviderRequest:
        """Return the call of `predict`, or of `predict_stream` if `stream` is given.

        InvalidRequest for parameters of which no inference request can be made.
        """
        parameters = {**self.parameters, **request} if self.parameters else request
        method = "predict" if stream is None else "predict_stream"
        return ProviderRequest("POST", f"{self.action.url}/{method}", _NO_HEADERS, request_body(parameters))


def predict_steps(connector_parameters: Mapping[str, str], predict_input: PredictInput) -> list[Step]:
    """Return the calls for a predict input: a runtime takes its fields as parameters of the same names."""
    own = predict_input.parameters
    if isinstance(predict_input, RemoteInput):
        return [Step(own)]
    if isinstance(predict_input, QuestionAnsweringInput):
        return [Step({**own, "question": predict_input.question, "context": predict_input.context})]
    texts = predict_input.text_docs
    if isinstance(predict_input, TextSimilarityInput):
        return [Step({**own, QUERY_TEXT: predict_input.query_text, TEXT_DOCS: _json_array(texts)}, len(texts))]
    groups = split_texts(texts, step_size(connector_parameters))
    return [Step({**own, TEXT_DOCS: _json_array(group)}, len(group)) for group in groups]


def request_body(parameters: Mapping[str, str]) -> bytes:
    """Return the request in JSON. InvalidRequest names the parameter that is wrong."""
    whole = parameters.get(INFERENCE_REQUEST)
    if whole is not None:
        return _checked_request(whole)
    tensors, taken = _tensors(parameters)
    if not tensors:
        raise InvalidRequest(
            "The parameters have nothing for the runtime: it takes inputs, prompt, messages, text_docs or "
            f"{INFERENCE_REQUEST}"
        )
    beside = {
        name: _parameter(name, text)
        for name, text in parameters.items()
        if name not in taken and name not in _NOT_OF_THE_RUNTIME and not _is_null(text)
    }
    request: _Object = {"inputs": tensors}
    if beside:
        request["parameters"] = beside
    return jsontext.dumps(request).encode("utf-8", "replace")


def readable_body(body: bytes) -> str:
    """Return a request as guardrails read it: followed by its base64 texts, decoded, in an array."""
    text = body.decode("utf-8", "replace")
    try:
        request: Any = orjson.loads(body)
        inputs = [one for one in request["inputs"] if one["datatype"] == "BYTES"]
    except (ValueError, LookupError, TypeError):
        return text
    found: list[str] = []
    pending = [one.get("data") for one in inputs]
    while pending:
        value = pending.pop()
        if isinstance(value, list):
            pending += value
        elif isinstance(value, str) and (decoded := _decoded(value)):
            found.append(decoded)
    return f"[{text},{jsontext.dumps(found)}]" if found else text


def _checked_request(text: str) -> bytes:
    """Return a whole request; the runtime checks its contents."""
    if not text.lstrip().startswith("{") or not (isinstance(text, JsonText) or jsontext.is_json(text)):
        raise InvalidRequest(f"{INFERENCE_REQUEST} must be a JSON object, an inference request of the V2 protocol")
    return text.encode("utf-8", "replace")


def _tensors(parameters: Mapping[str, str]) -> tuple[list[_Object], set[str]]:
    """Return the request's tensors, and the names of the parameters that they were made from."""
    tensors: list[_Object] = []
    taken: set[str] = set()

    def take(name: str, make: Callable[[str, str], list[_Object]]) -> None:
        if name in parameters and not _is_null(parameters[name]):
            tensors.extend(make(name, parameters[name]))
            taken.add(name)

    take("messages", _messages)
    take("inputs", _inputs)
    take("prompt", _texts)
    take(TEXT_DOCS, _texts)
    if TEXT_DOCS in taken:
        take(QUERY_TEXT, _texts)
    if not taken:
        take("question", _texts)
        if taken:
            take("context", _texts)
    return tensors, taken


def _inputs(name: str, text: str) -> list[_Object]:
    """Return the tensors in the parameter, or the tensor of its texts."""
    value = _container(name, text)
    if (
        isinstance(value, list)
        and value
        and all(isinstance(one, dict) and one.keys() >= _TENSOR_MEMBERS for one in value)
    ):
        return value
    return _texts(name, text)


def _texts(name: str, text: str) -> list[_Object]:
    """Return the tensor of a text, or of the texts in an array."""
    if not isinstance(text, JsonText):
        return [_strings(name, [text])]
    value = jsontext.parse(text, name)
    if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        return [_strings(name, value)]
    tensors = ", or an array of tensors with name, shape, datatype and data" if name == "inputs" else ""
    raise InvalidRequest(f"{name} must be a text, or an array of texts{tensors}")


def _messages(name: str, text: str) -> list[_Object]:
    """Return the tensors of a chat: role, content, and the other members of its messages."""
    messages = jsontext.parse(text, name)
    if not isinstance(messages, list) or not messages or not all(isinstance(one, dict) for one in messages):
        raise InvalidRequest("messages must be an array of objects with role and content")
    if len(messages) > MAX_MESSAGES:
        raise InvalidRequest(f"A chat may have {MAX_MESSAGES} messages; this one has {len(messages)}")
    roles = [message.get("role") for message in messages]
    if not all(isinstance(role, str) for role in roles):
        raise InvalidRequest("Each of the messages must have a role, a string")
    contents = [_content(message.get("content")) for message in messages]
    columns = {"type": [type for type, _ in contents] if any(type != "text" for type, _ in contents) else []}
    for column in _COLUMNS[1:]:
        if any(column in message for message in messages):
            columns[column] = [_cell(message.get(column)) for message in messages]
    tensors = [_strings("role", roles), _strings("content", [content for _, content in contents])]
    return tensors + [_strings(column, values) for column, values in columns.items() if values]


def _content(content: Any) -> tuple[str, str]:
    """Return type and content of a message; for parts these are JSON arrays."""
    if not isinstance(content, list):
        return "text", _cell(content)
    parts = [part if isinstance(part, dict) else {"type": "text", "text": part} for part in content]
    values = [part.get("text") if part.get("type") == "text" else part for part in parts]
    return jsontext.dumps([str(part.get("type")) for part in parts]), jsontext.dumps(values)


def _cell(value: Any) -> str:
    return "" if value is None else jsontext.to_text(value)


def _strings(name: str, texts: list[str]) -> _Object:
    return {"name": name, "shape": [len(texts)], "datatype": "BYTES", "parameters": _STRING, "data": texts}


def _parameter(name: str, text: str) -> Any:
    """Return the value of a further parameter: a number, boolean, object or array if its text is one."""
    if isinstance(text, JsonText):
        return jsontext.parse(text, name)
    value = jsontext.value_or_text(text)
    return text if value is None or isinstance(value, str) else value


def _container(name: str, text: str) -> Any:
    """Return the array or object that a text is, else None."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    return jsontext.parse(text, name) if isinstance(text, JsonText) else jsontext.value_or_text(text)


def _is_null(text: str) -> bool:
    return isinstance(text, JsonText) and text.strip() == "null"


def _decoded(encoded: str) -> str:
    """Decode base64, "" for data that is not text."""
    try:
        return b64decode(encoded, validate=True).decode()
    except (Base64Error, ValueError):
        return ""


def inference_parameters(request: InferenceRequest, id: str, *, has_fallbacks: bool) -> dict[str, str]:
    """Return the parameters of a prediction for a V2 request; `id` is that of the request, or a new one.

    The runtime gets the request as the client wrote it. For fallback models, its text or chat and its own parameters
    are among the parameters.
    """
    whole: dict[str, Any] = {"id": id}
    if request.parameters:
        whole["parameters"] = request.parameters
    whole["inputs"] = _written_inputs(request)
    if request.outputs:
        whole["outputs"] = [_output(output) for output in request.outputs]
    return {**(_remote_parameters(request) if has_fallbacks else {}), INFERENCE_REQUEST: json_text(whole)}


def _written_inputs(request: InferenceRequest) -> Sequence[Any]:
    if request.written_inputs is not None:
        return request.written_inputs
    return [{**tensor_object(tensor), "shape": list(tensor.shape)} for tensor in request.inputs]


def _output(output: RequestedOutput) -> dict[str, Any]:
    return {"name": output.name, **({"parameters": output.parameters} if output.parameters else {})}


def _remote_parameters(request: InferenceRequest) -> dict[str, str]:
    """Return the parameters for connectors' templates, if the request has a text or a chat."""
    own = {name: to_parameter(value) for name, value in request.parameters.items() if name != HEADERS}
    tensors = {tensor.name: tensor for tensor in request.inputs}
    try:
        if is_chat(tensors):
            messages = chat_messages(tensors, ChatForm())
            own[MESSAGES] = json_text(messages)
            content = messages[0]["content"] if len(messages) == 1 else None
            return {**own, **_prompts(content)} if isinstance(content, str) else own
        found = next((tensor for tensor in request.inputs if tensor.datatype == "BYTES"), None)
        return {**own, **_only_text(found)}
    except InvalidRequest:  # the runtime may accept it nevertheless
        return own


def _only_text(tensor: Tensor | None) -> dict[str, str]:
    found = [] if tensor is None else texts(tensor)
    return _prompts(found[0]) if len(found) == 1 else {}


def _prompts(text: str) -> dict[str, str]:
    return dict.fromkeys(PROMPTS, text)


def _json_array(texts: Sequence[str]) -> JsonText:
    return JsonText(jsontext.dumps(list(texts)))
