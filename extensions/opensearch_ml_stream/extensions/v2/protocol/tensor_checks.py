"""Checks of a tensor's data against its shape, its datatype and the memory that it may take."""

from collections.abc import Sequence
from math import prod
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest

# Memory for a request's tensors while they are read; three million floats take half of it.
MAX_BYTES = 192 * 1024 * 1024
NUMBER_BYTES = 32  # in a list; PLACE_BYTES for BOOL, INT8 and UINT8, since Python caches these numbers
PLACE_BYTES = 8
TEXT_BYTES = 128  # of an element of BYTES, beside its contents

MAX_DIMENSIONS = 32  # of a tensor, as in NumPy before 2.0
MAX_LENGTH = 2**63 - 1  # of a dimension

_NUMBERS = frozenset({bool, int, float, type(None)})  # null is how pandas and orjson write a missing number
_STRINGS = frozenset({str, bytes, type(None)})


class TensorMemory:
    """The memory that a request's tensors may take."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = MAX_BYTES

    def spend(self, size: int) -> None:
        """Reserve memory before it is allocated. InvalidRequest if there is not enough left."""
        self._left -= size
        if self._left < 0:
            raise InvalidRequest(
                f"The request's tensors would take more than {MAX_BYTES >> 20} MiB of memory; send fewer elements at a"
                " time",
                type="content_too_long_exception",
            )


def flat_data(data: Any, name: str) -> list[Any]:
    """Return a tensor's data, flat or nested by its dimensions, as a flat list; a bare value as a list of one.

    InvalidRequest for lists beside values, and for lists that are nested more deeply than a tensor's dimensions may be.
    """
    if not isinstance(data, list):
        return [data]
    flat: list[Any] = data
    for _ in range(MAX_DIMENSIONS):
        if list not in (kinds := set(map(type, flat))):
            return flat
        if len(kinds) > 1:
            raise InvalidRequest(
                f"Tensor {name}: data has arrays and values side by side; nest it by the tensor's shape"
            )
        flat = [value for inner in flat for value in inner]
    raise InvalidRequest(f"Tensor {name}: data is nested more than {MAX_DIMENSIONS} levels deep")


def checked_shape(
    name: str, datatype: str, shape: Sequence[int], data: Sequence[Any], *, is_raw: bool = False
) -> Sequence[int]:
    """Return the shape of flat data, in which -1 is a length that follows from the others, as in MLServer.

    The shape of raw contents must be complete, as in Triton. InvalidRequest if the number of elements does not fit the
    shape, or their types do not fit the datatype.
    """
    kinds = set(map(type, data))
    if not kinds <= (_STRINGS if datatype == "BYTES" else _NUMBERS):
        wanted = "strings" if datatype == "BYTES" else "booleans" if datatype == "BOOL" else "numbers"
        raise InvalidRequest(f"Tensor {name}: the data of datatype {datatype} must be {wanted}")
    if is_raw and -1 in shape:
        raise InvalidRequest(
            f"Tensor {name}: shape {list(shape)} has a length of -1; each length of raw contents must be given, and "
            f"these have {len(data)} elements"
        )
    count = prod(shape)
    if count == len(data) and count >= 0 and min(shape, default=1) >= 0:
        return shape
    if len(data) == 1 and datatype == "BYTES" and list(shape) == [_length_in_bytes(data[0])]:
        return [1]  # a string may be described as the tensor of its bytes
    known = -count
    if list(shape).count(-1) == 1 and known > 0 and len(data) % known == 0:
        return [len(data) // known if length == -1 else length for length in shape]
    raise InvalidRequest(f"Tensor {name}: shape {list(shape)} does not fit its data, which has {len(data)} elements")


def _length_in_bytes(element: Any) -> int:
    return -1 if element is None else len(element if isinstance(element, bytes) else element.encode())
