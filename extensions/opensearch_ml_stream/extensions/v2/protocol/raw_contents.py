"""Raw contents of tensors: consecutive elements, little-endian; each element of BYTES after its length in four bytes.

Sources: kserve/open-inference-protocol, `inference_grpc.md`, "Raw Tensor Contents", and Triton's
`extension_binary_data.md`, which has the same bytes after the JSON of a request over HTTP.
"""

import struct
from collections.abc import Sequence
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest, UpstreamError
from opensearch_ml_stream.extensions.v2.protocol.messages import Tensor
from opensearch_ml_stream.extensions.v2.protocol.tensor_checks import (
    NUMBER_BYTES,
    PLACE_BYTES,
    TEXT_BYTES,
    TensorMemory,
)

_STRUCT_FORMATS = {
    "BOOL": "?", "UINT8": "B", "UINT16": "H", "UINT32": "I", "UINT64": "Q", "INT8": "b", "INT16": "h", "INT32": "i",
    "INT64": "q", "FP16": "e", "FP32": "f", "FP64": "d",
}  # fmt: skip
_ONE_BYTE_TYPES = ("BOOL", "INT8", "UINT8")


def bytes_of_each(datatype: str) -> int:
    """Return the memory that an element takes once it is read."""
    if datatype == "BYTES":
        return TEXT_BYTES
    return PLACE_BYTES if datatype in _ONE_BYTE_TYPES else NUMBER_BYTES


def unpack(name: str, datatype: str, raw: bytes, memory: TensorMemory) -> Sequence[Any]:
    """Return the elements of a tensor's raw contents. InvalidRequest if they end within one."""
    if datatype == "BYTES":
        return texts(_split(name, raw, memory))
    code = _STRUCT_FORMATS[datatype]
    count, rest = divmod(len(raw), struct.calcsize(code))
    if rest:
        raise InvalidRequest(f"Tensor {name}: its raw contents end within an element of {datatype}")
    memory.spend(bytes_of_each(datatype) * count)
    return struct.unpack(f"<{count}{code}", raw)


def pack(tensor: Tensor) -> bytes:
    """Return the raw contents of a tensor. UpstreamError for data that is not of its datatype."""
    if tensor.datatype == "BYTES":
        elements = [encoded(element) for element in tensor.data]
        return b"".join([len(element).to_bytes(4, "little") + element for element in elements])
    try:
        return struct.pack(f"<{len(tensor.data)}{_STRUCT_FORMATS[tensor.datatype]}", *numbers(tensor))
    except (TypeError, ValueError, OverflowError, struct.error):
        raise not_of_datatype(tensor) from None


def not_of_datatype(tensor: Tensor) -> UpstreamError:
    """Return the error for a tensor of a response whose data is not of its datatype."""
    return UpstreamError(f"The response's tensor {tensor.name} has data that is not {tensor.datatype}")


def numbers(tensor: Tensor) -> Sequence[Any]:
    """Return the elements, with NaN where JSON had null; an INT tensor has none of those."""
    if not tensor.datatype.startswith("FP"):
        return tensor.data
    return [float("nan") if number is None else number for number in tensor.data]


def encoded(element: Any) -> bytes:
    """Return an element of BYTES."""
    if isinstance(element, bytes):
        return element
    return b"" if element is None else str(element).encode()


def texts(elements: Sequence[bytes]) -> list[str | bytes]:
    """Return elements of BYTES as strings if they are UTF-8, else as bytes."""
    return [_text(element) for element in elements]


def _split(name: str, raw: bytes, memory: TensorMemory) -> list[bytes]:
    """Split raw BYTES into elements, each of which follows its length."""
    elements: list[bytes] = []
    place, end = 0, len(raw)
    while place < end:
        if end - place < 4 or end - place - 4 < (length := int.from_bytes(raw[place : place + 4], "little")):
            raise InvalidRequest(f"Tensor {name}: its raw contents end within an element")
        memory.spend(TEXT_BYTES)
        elements.append(raw[place + 4 : place + 4 + length])
        place += 4 + length
    return elements


def _text(element: bytes) -> str | bytes:
    try:
        return element.decode()
    except UnicodeDecodeError:
        return element
