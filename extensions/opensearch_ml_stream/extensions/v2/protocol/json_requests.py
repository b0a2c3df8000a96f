"""Read the JSON body of an inference request, in MLServer's dialect of tensors or in that of the generate extension.

Sources: MLServer's `types/dataplane.py` and kserve/open-inference-protocol, `inference_rest.md` and
`generate_rest.yaml`; Triton's and TensorRT-LLM's generate extension, where parameters stand beside `text_input`.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Any

import orjson

from opensearch_ml_stream.connectors.errors import InvalidBody, InvalidRequest
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.extensions.v2.protocol.messages import DATATYPES, InferenceRequest, RequestedOutput, Tensor
from opensearch_ml_stream.extensions.v2.protocol.request_members import (
    Location,
    as_list,
    as_name,
    as_object,
    invalid,
    optional_name,
    optional_object,
    required,
)
from opensearch_ml_stream.extensions.v2.protocol.tensor_data import (
    MAX_DIMENSIONS,
    MAX_LENGTH,
    NUMBER_BYTES,
    TensorMemory,
    checked_shape,
    flat_data,
)

TEXT_INPUT = "text_input"

_EXPECTED_DATATYPE = f"Input should be {', '.join(map(repr, DATATYPES[:-1]))} or {DATATYPES[-1]!r}"
# Of a request; each takes longer to make, and to look into, than a number. One in a string counts, too.
MAX_CONTAINERS, CHARS_FOR_EACH_CONTAINER = 40_000, 10
_CONTAINER_BYTES, _MEMBER_BYTES = 96, 200  # of an array or object, and of a member with its name
_TEXT_FIELDS = frozenset({"id", "parameters", "outputs", TEXT_INPUT})


class Dialect(Enum):
    """How a client writes requests and reads responses."""

    TENSORS = "tensors"  # MLServer, Seldon: `inputs`, `outputs`
    TEXT = "text"  # KServe's and Triton's generate: `text_input`, `text_output`


def read_request(body: bytes) -> tuple[InferenceRequest, Dialect]:
    """Return the request of a body and its dialect.

    InvalidBody if it is no request of either, InvalidRequest for tensors whose data does not fit, or beyond bounds.
    """
    members = as_object(_parse(body), ())
    if "inputs" in members or TEXT_INPUT not in members:
        return _tensors_request(members), Dialect.TENSORS
    return _text_request(members), Dialect.TEXT


def _parse(body: bytes) -> Any:
    text = jsontext.decode(body)
    containers = text.count("[") + text.count("{")
    if containers > (most := max(MAX_CONTAINERS, len(text) // CHARS_FOR_EACH_CONTAINER)):
        raise InvalidRequest(
            f"A request of this length may hold {most} arrays and objects; this one has {containers}: write the data "
            "of a tensor as one flat array"
        )
    TensorMemory().spend(_memory(text, containers))
    try:
        value = orjson.loads(text)
        if containers > jsontext.MAX_DEPTH:
            jsontext.check_depth(value)
    except orjson.JSONDecodeError as error:
        raise _not_json(error) from None
    except RecursionError:
        raise jsontext.too_deep() from None
    return value


def _memory(text: str, containers: int) -> int:
    """Return how many bytes the values of a JSON text take at most; a comma in a string counts for a number."""
    values = text.count(",") + text.count('"')
    return NUMBER_BYTES * values + _CONTAINER_BYTES * containers + _MEMBER_BYTES * text.count(":")


def _not_json(error: orjson.JSONDecodeError) -> InvalidBody:
    reason = f"The request body is not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
    return InvalidBody(reason, [{"type": "json_invalid", "loc": ["body", error.pos], "msg": "JSON decode error"}])


def _tensors_request(members: Mapping[str, Any]) -> InferenceRequest:
    inputs = as_list(required(members, "inputs", ()), ("inputs",))
    return InferenceRequest(
        [read_tensor(value, ("inputs", place)) for place, value in enumerate(inputs)],
        optional_name(members, "id", ()),
        optional_object(members, "parameters", ()),
        _outputs(members),
        inputs,
    )


def _text_request(members: Mapping[str, Any]) -> InferenceRequest:
    """Read a text, or an array of texts, as one BYTES tensor; members of other names are parameters."""
    value = members[TEXT_INPUT]
    texts = value if isinstance(value, list) else [value]
    if not all(isinstance(text, str) for text in texts):
        raise invalid((TEXT_INPUT,), "string_type", "Input should be a valid string")
    beside = {name: member for name, member in members.items() if name not in _TEXT_FIELDS}
    return InferenceRequest(
        [Tensor(TEXT_INPUT, "BYTES", [len(texts)], texts)],
        optional_name(members, "id", ()),
        {**beside, **optional_object(members, "parameters", ())},
        _outputs(members),
    )


def _outputs(members: Mapping[str, Any]) -> tuple[RequestedOutput, ...]:
    outputs = as_list(members.get("outputs", []), ("outputs",))
    return tuple(_output(value, ("outputs", place)) for place, value in enumerate(outputs))


def _output(value: Any, where: Location) -> RequestedOutput:
    members = as_object(value, where)
    name = as_name(required(members, "name", where), (*where, "name"))
    return RequestedOutput(name, optional_object(members, "parameters", where))


def read_tensor(value: Any, where: Location) -> Tensor:
    """Return the tensor of a JSON object. InvalidBody or InvalidRequest if it is none."""
    members = as_object(value, where)
    name = as_name(required(members, "name", where), (*where, "name"))
    shape = _shape(required(members, "shape", where), (*where, "shape"))
    datatype = required(members, "datatype", where)
    if not isinstance(datatype, str) or datatype not in DATATYPES:
        raise invalid((*where, "datatype"), "enum", _EXPECTED_DATATYPE)
    parameters = optional_object(members, "parameters", where)
    data = flat_data(required(members, "data", where), name)
    return Tensor(name, datatype, checked_shape(name, datatype, shape, data), data, parameters)


def _shape(value: Any, where: Location) -> list[int]:
    shape = as_list(value, where)
    if len(shape) > MAX_DIMENSIONS:
        raise InvalidRequest(f"A tensor may have {MAX_DIMENSIONS} dimensions; this one has {len(shape)}")
    for place, length in enumerate(shape):
        if type(length) is not int or not -1 <= length <= MAX_LENGTH:
            raise invalid((*where, place), "int_type", "Input should be a valid integer")
    return shape
