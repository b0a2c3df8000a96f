"""Read the JSON body of an inference request, in MLServer's dialect of tensors or the generate extension's.

Sources: MLServer's `types/dataplane.py` and kserve/open-inference-protocol, `inference_rest.md` and
`generate_rest.yaml`; Triton's and TensorRT-LLM's generate extension, where parameters stand beside `text_input`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import orjson

from opensearch_ml_stream.connectors.errors import InvalidBody, InvalidRequest
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.extensions.v2.protocol.binary_data import (
    BINARY_DATA_SIZE,
    BinaryData,
    BinaryOutputs,
    binary_outputs,
    without_binary,
)
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
from opensearch_ml_stream.extensions.v2.protocol.tensor_checks import (
    MAX_DIMENSIONS,
    MAX_LENGTH,
    NUMBER_BYTES,
    TensorMemory,
    checked_shape,
    flat_data,
)

TEXT_INPUT = "text_input"

_EXPECTED_DATATYPE = f"Input should be {', '.join(map(repr, DATATYPES[:-1]))} or {DATATYPES[-1]!r}"
# Of a request; each costs more time than a number. Brackets in strings count, too.
MAX_CONTAINERS, CHARS_FOR_EACH_CONTAINER = 40_000, 10
_CONTAINER_BYTES, _MEMBER_BYTES = 96, 200  # of an array or object, and of a member with its name
_TEXT_FIELDS = frozenset({"id", "parameters", "outputs", TEXT_INPUT})


class Dialect(Enum):
    """How a client writes requests and reads responses."""

    TENSORS = "tensors"  # MLServer, Seldon: `inputs`, `outputs`
    TEXT = "text"  # KServe's and Triton's generate: `text_input`, `text_output`


@dataclass(frozen=True, slots=True)
class WrittenForm:
    """The form of a client's request, which its response gets, too."""

    dialect: Dialect = Dialect.TENSORS
    binary: BinaryOutputs = field(default_factory=BinaryOutputs)


def read_request(body: bytes, json_length: int | None = None) -> tuple[InferenceRequest, WrittenForm]:
    """Return the request of a body and its form; after `json_length` bytes of JSON follow contents of tensors.

    InvalidBody if it is a request of neither dialect, InvalidRequest for tensors whose data does not fit, or that are
    too large.
    """
    memory = TensorMemory()
    length = len(body) if json_length is None else json_length
    if length > len(body):
        raise InvalidRequest(f"Inference-Header-Content-Length is {length}; the body has {len(body)}")
    binary = BinaryData(memoryview(body)[length:], memory)
    members = as_object(_parse(body[:length], memory), ())
    if "inputs" in members or TEXT_INPUT not in members:
        request, form = _tensors_request(members, binary)
    else:
        request, form = _text_request(members), WrittenForm(Dialect.TEXT)
    binary.check_end()
    return request, form


def _parse(body: bytes, memory: TensorMemory) -> Any:
    text = jsontext.decode(body)
    containers = text.count("[") + text.count("{")
    if containers > (most := max(MAX_CONTAINERS, len(text) // CHARS_FOR_EACH_CONTAINER)):
        raise InvalidRequest(
            f"A request of this length may hold {most} arrays and objects; this one has {containers}: write the data "
            "of a tensor as one flat array"
        )
    memory.spend(_memory(text, containers))
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
    """Return how many bytes the values of a JSON text take at most; a comma in a string counts as a number."""
    values = text.count(",") + text.count('"')
    return NUMBER_BYTES * values + _CONTAINER_BYTES * containers + _MEMBER_BYTES * text.count(":")


def _not_json(error: orjson.JSONDecodeError) -> InvalidBody:
    reason = f"The request body is not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
    return InvalidBody(reason, [{"type": "json_invalid", "loc": ["body", error.pos], "msg": "JSON decode error"}])


def _tensors_request(members: Mapping[str, Any], binary: BinaryData) -> tuple[InferenceRequest, WrittenForm]:
    written = as_list(required(members, "inputs", ()), ("inputs",))
    inputs = [read_tensor(value, ("inputs", place), binary) for place, value in enumerate(written)]
    parameters, outputs = optional_object(members, "parameters", ()), _outputs(members)
    wanted = binary_outputs(parameters, {output.name: output.parameters for output in outputs})
    request = InferenceRequest(
        inputs,
        optional_name(members, "id", ()),
        without_binary(parameters),
        tuple(RequestedOutput(output.name, without_binary(output.parameters)) for output in outputs),
        None if binary.is_used else written,
    )
    return request, WrittenForm(binary=wanted)


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


def read_tensor(value: Any, where: Location, binary: BinaryData | None = None) -> Tensor:
    """Return the tensor of a JSON object, its contents perhaps in `binary`. InvalidBody or InvalidRequest if none."""
    members = as_object(value, where)
    name = as_name(required(members, "name", where), (*where, "name"))
    shape = _shape(required(members, "shape", where), (*where, "shape"))
    datatype = required(members, "datatype", where)
    if not isinstance(datatype, str) or datatype not in DATATYPES:
        raise invalid((*where, "datatype"), "enum", _EXPECTED_DATATYPE)
    parameters = optional_object(members, "parameters", where)
    data: Sequence[Any]
    is_raw = False
    if binary is not None and BINARY_DATA_SIZE in parameters:
        is_raw = True
        data = binary.take(name, datatype, parameters[BINARY_DATA_SIZE])
        parameters = without_binary(parameters)
    else:
        data = flat_data(required(members, "data", where), name)
    return Tensor(name, datatype, checked_shape(name, datatype, shape, data, is_raw=is_raw), data, parameters)


def _shape(value: Any, where: Location) -> list[int]:
    shape = as_list(value, where)
    if len(shape) > MAX_DIMENSIONS:
        raise InvalidRequest(f"A tensor may have {MAX_DIMENSIONS} dimensions; this one has {len(shape)}")
    for place, length in enumerate(shape):
        if type(length) is not int or not -1 <= length <= MAX_LENGTH:
            raise invalid((*where, place), "int_type", "Input should be a valid integer")
    return shape
