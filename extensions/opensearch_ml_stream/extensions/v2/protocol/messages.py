"""Messages of the V2 protocol, for HTTP and gRPC.

Source: kserve/open-inference-protocol, `inference_rest.md` and `inference_grpc.md`; MLServer's `types/dataplane.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

DATATYPES = (
    "BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP16", "FP32", "FP64", "BYTES",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Tensor:
    """An input or output tensor.

    `data` is flat, in row-major order: booleans, integers, floats, and for BYTES a `str` for each element that is text
    (UTF-8), `bytes` for any other.
    """

    name: str
    datatype: str
    shape: Sequence[int]
    data: Sequence[Any]
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RequestedOutput:
    """An output that the client asks for."""

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class InferenceRequest:
    """A request for an inference, without members that were null. `id` is "" if the client gave none.

    `written_inputs` are the inputs as they were written in JSON, None if some were not in JSON.
    """

    inputs: Sequence[Tensor]
    id: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    outputs: Sequence[RequestedOutput] = ()
    written_inputs: Sequence[Mapping[str, Any]] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ResponseShape:
    """What all responses to one request have in common beside the data of their tensors.

    `output` is the name of the tensor that holds the text. With `is_chat` it is `content`, between the tensors `role`
    and `type`, as in Seldon's LLM module. With `is_local` the model's responses are passed on, and these are only
    defaults for what they lack.
    """

    model_name: str
    model_version: str | None
    id: str
    output: str = "output"
    is_chat: bool = False
    is_local: bool = False


@dataclass(frozen=True, slots=True)
class InferenceResponse:
    """A whole response. `parameters` holds `finish_reason` and `usage` where they are known."""

    shape: ResponseShape
    outputs: Sequence[Tensor]
    parameters: Mapping[str, Any] = field(default_factory=dict)
