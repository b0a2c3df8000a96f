"""Make the predict inputs of a V2 request: which tensor fills which parameter of a connector's templates.

The position of a parameter in the template decides how its tensor is used: where a text belongs, each element makes a
prediction; where JSON belongs, all elements are one array.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.predict.inputs import RemoteInput, TextDocsInput, TextSimilarityInput
from opensearch_ml_stream.connectors.predict.model_inputs import TENSORS, ChatForm, ModelInputs
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.extensions.v2.protocol.chat_messages import CHAT_TENSORS, chat_messages, is_chat
from opensearch_ml_stream.extensions.v2.protocol.messages import InferenceRequest, Tensor
from opensearch_ml_stream.extensions.v2.protocol.tensor_parameters import (
    as_json,
    elements,
    json_tensors,
    texts,
    to_parameter,
)

MAX_PREDICTIONS = 1_000  # of one request
MAX_PARAMETERS = 10_000  # of one request
MAX_REPEATED_PARAMETERS = 100_000  # of all predictions of one request together
MAX_REPEATED_CHARS = 32 * 1024 * 1024
LLM_PARAMETERS = "llm_parameters"
HEADERS = "headers"
QUERY, DOCUMENTS = "query", "documents"  # the tensors of a ranking

# Members of `parameters` that are about the request, and not for the model.
_NOT_OF_THE_MODEL = frozenset({HEADERS, "content_type", "stream", LLM_PARAMETERS})


_Column = Sequence[Mapping[str, str]]
"""The parameters that a tensor gives each prediction; a single element counts for all of them."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PredictInputs:
    """The predictions that a request asks for, in order: several if its text tensor has several elements."""

    inputs: Sequence[RemoteInput | TextDocsInput | TextSimilarityInput]
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
    if model.ranks and _is_ranking(tensors):
        return _of_ranking(parameters, tensors, model)
    in_chat = is_chat(tensors) and (model.chat is not None or model.prompt is not None)
    columns, left = _fill_named(parameters, tensors, model, CHAT_TENSORS if in_chat else ())
    if in_chat:
        _check_all_used(left, model)
        rows = _rows({**parameters, **_chat(tensors, model)}, columns)
        if len(rows) > 1:
            raise InvalidRequest(f"A request has one chat; tensors beside it have {len(rows)} elements")
        return PredictInputs([RemoteInput(rows[0])], is_chat=True)
    text = next((tensor for tensor in left if tensor.datatype == "BYTES"), None)
    _check_all_used([tensor for tensor in left if tensor is not text], model)
    if text is not None and model.takes_texts:
        return PredictInputs(_of_texts(text, parameters, columns))
    if text is not None:
        columns[text.name] = _of_text(text, model)
    return PredictInputs([RemoteInput(row) for row in _rows(parameters, columns)])


def _caller_parameters(given: Mapping[str, Any], model: ModelInputs) -> dict[str, str]:
    """Return the parameters of a request as those of a predict request: `llm_parameters` override the others.

    The request's headers are among them if the template has a parameter for them.
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
) -> tuple[dict[str, _Column], list[Tensor]]:
    """Assign tensors to parameters of the template with the same names; return the other tensors, without `aside`.

    A tensor for a text is returned as a column, with a text for each prediction. A text never replaces a parameter that
    the connector sets, since that may be a template around the prompt.
    """
    columns: dict[str, _Column] = {}
    left: list[Tensor] = []
    for name, tensor in tensors.items():
        if name == "stream" or name in aside:  # sent by Triton's clients; here the route decides
            continue
        if tensor.datatype == "BYTES":
            is_named = name in model.free and name != model.prompt and name not in model.texts
        else:
            is_named = name in model.names
        if not is_named or not tensor.data:
            left.append(tensor)
        elif name in model.as_json:
            parameters[name] = as_json(tensor)
        else:
            columns[name] = [{name: value} for value in elements(tensor, MAX_PREDICTIONS)]
    return columns, left


def _rows(parameters: Mapping[str, str], columns: Mapping[str, _Column]) -> list[dict[str, str]]:
    """Return the parameters of each prediction: a column has a value for each of them, or one for all.

    InvalidRequest for columns of several lengths, and for parameters that are too many or too long to be repeated.
    """
    lengths = {len(column): name for name, column in columns.items() if len(column) != 1}
    if len(lengths) > 1:
        (one, first), (other, second) = list(lengths.items())[:2]
        raise InvalidRequest(
            f"Tensor {first} has {one} elements and tensor {second} has {other}, but each element makes a prediction: "
            "send as many of both, or one of either"
        )
    count = next(iter(lengths), 1)
    repeated = [parameters, *(column[0] for column in columns.values() if len(column) == 1)]
    _check_repeated(repeated, count)
    rows = [{name: text for part in repeated for name, text in part.items()} for _ in range(count)]
    for column in columns.values():
        if len(column) == count > 1:
            for row, own in zip(rows, column, strict=True):
                row |= own
    return rows


def _is_ranking(tensors: Mapping[str, Tensor]) -> bool:
    return all(name in tensors and tensors[name].datatype == "BYTES" for name in (QUERY, DOCUMENTS))


def _check_all_used(left: Sequence[Tensor], model: ModelInputs) -> None:
    if left:
        raise InvalidRequest(
            f"The model cannot take the tensor {left[0].name} ({left[0].datatype}). It takes {model.describe()}"
        )


def _of_ranking(parameters: dict[str, str], tensors: Mapping[str, Tensor], model: ModelInputs) -> PredictInputs:
    """Return the input of each query with the documents to rank, for the connector's pre-process function."""
    others = {name: tensor for name, tensor in tensors.items() if name not in (QUERY, DOCUMENTS)}
    columns, left = _fill_named(parameters, others, model, ())
    _check_all_used(left, model)
    queries = _not_empty(tensors[QUERY], texts(tensors[QUERY], MAX_PREDICTIONS))
    documents = tuple(_not_empty(tensors[DOCUMENTS], texts(tensors[DOCUMENTS])))
    rows = _rows(parameters, {**columns, QUERY: [{QUERY: query} for query in queries]})
    _check_repeated([{DOCUMENTS: "".join(documents)}], len(rows))
    return PredictInputs([TextSimilarityInput(row.pop(QUERY), documents, row) for row in rows])


def _of_texts(tensor: Tensor, parameters: Mapping[str, str], columns: Mapping[str, _Column]) -> Sequence[TextDocsInput]:
    """Return the input of all texts or, if other tensors have a value for each text, one input for each."""
    found = _not_empty(tensor, texts(tensor))
    if all(len(column) == 1 for column in columns.values()):
        return [TextDocsInput(tuple(found), row) for row in _rows(parameters, columns)]
    rows = _rows(parameters, {tensor.name: [{tensor.name: text} for text in found], **columns})
    return [TextDocsInput((row.pop(tensor.name),), row) for row in rows]


def _of_text(tensor: Tensor, model: ModelInputs) -> _Column:
    """Return the parameters of each text of a tensor; where the template takes JSON, of all texts together."""
    if model.prompt is not None and model.prompt in model.as_json:
        _not_empty(tensor, tensor.data)
        return [{model.prompt: as_json(tensor, of_texts=True)}]
    found = _not_empty(tensor, texts(tensor, MAX_PREDICTIONS))
    filled = [model.fill_text(one) for one in found]
    if filled[0]:
        return filled
    raise InvalidRequest(
        f"The model's connector has no parameter for a text. It takes {model.describe()}. If a parameter of another "
        "name is for a text, name it in the model's _sidecar.v2.prompt"
    )


def _not_empty(tensor: Tensor, found: Sequence[T]) -> Sequence[T]:
    if not found:
        raise InvalidRequest(f"Tensor {tensor.name} has no text")
    return found


def _check_repeated(repeated: Sequence[Mapping[str, str]], times: int) -> None:
    """Raise InvalidRequest for parameters that are too many, or too long, to be repeated so often."""
    count, size = sum(map(len, repeated)), sum(len(text) for part in repeated for text in part.values())
    if times > 1 and (times * count > MAX_REPEATED_PARAMETERS or times * size > MAX_REPEATED_CHARS):
        raise InvalidRequest(f"The request's parameters are too many, or too long, for each of {times} texts")


def _chat(tensors: Mapping[str, Tensor], model: ModelInputs) -> dict[str, str]:
    """Return the parameter of a chat's messages; the text of its only message if the model takes no chat."""
    if model.chat is not None:
        return model.chat.fill(chat_messages(tensors, model.chat))
    messages = chat_messages(tensors, ChatForm())
    if model.prompt is None or len(messages) > 1 or not isinstance(messages[0]["content"], str):
        raise InvalidRequest(f"The model cannot take a chat of several messages. It takes {model.describe()}")
    return {model.prompt: messages[0]["content"]}
