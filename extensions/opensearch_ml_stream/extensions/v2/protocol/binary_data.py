"""Triton's binary tensor data over HTTP: contents of tensors after the JSON of a request or response.

Source: triton-inference-server/server, `docs/protocol/extension_binary_data.md`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.extensions.v2.protocol import raw_contents
from opensearch_ml_stream.extensions.v2.protocol.tensor_checks import TensorMemory

BINARY_DATA_SIZE = "binary_data_size"  # parameter of a tensor: the number of bytes after the JSON that are its contents
_OF_OUTPUT = "binary_data"  # parameter of a requested output
_OF_ALL_OUTPUTS = "binary_data_output"  # parameter of a request


class BinaryData:
    """The bytes after a request's JSON: contents of its tensors, in their order."""

    __slots__ = ("_data", "_memory", "_place", "is_used")

    def __init__(self, data: memoryview, memory: TensorMemory) -> None:
        self._data = data
        self._memory = memory
        self._place = 0
        self.is_used = False

    def take(self, name: str, datatype: str, size: object) -> Sequence[Any]:
        """Return the elements of the tensor whose contents are the next `size` bytes. InvalidRequest without these."""
        left = len(self._data) - self._place
        if type(size) is not int or not 0 <= size <= left:
            raise InvalidRequest(
                f"Tensor {name}: its {BINARY_DATA_SIZE} must be a number of bytes that are there; behind the JSON of "
                f"the request, whose length the header Inference-Header-Content-Length says, {left} are left"
            )
        self.is_used = True
        start, self._place = self._place, self._place + size
        return raw_contents.unpack(name, datatype, bytes(self._data[start : self._place]), self._memory)

    def check_end(self) -> None:
        """Raise InvalidRequest for bytes that belong to no tensor."""
        if self._place < len(self._data):
            raise InvalidRequest(
                f"{len(self._data) - self._place} bytes behind the JSON of the request belong to no tensor: each that "
                f"has contents there says how many in its parameter {BINARY_DATA_SIZE}"
            )


@dataclass(frozen=True, slots=True)
class BinaryOutputs:
    """Which outputs a client wants after the JSON of the response: by name, and whether `others`."""

    others: bool = False
    named: Mapping[str, bool] = field(default_factory=dict)

    def has(self, name: str) -> bool:
        """Whether the output of that name is wanted there."""
        return self.named.get(name, self.others)

    def __bool__(self) -> bool:
        return self.others or any(self.named.values())


def binary_outputs(parameters: Mapping[str, Any], outputs: Mapping[str, Mapping[str, Any]]) -> BinaryOutputs:
    """Read which outputs are wanted so from the parameters of a request and of its outputs."""
    named = {name: of_one[_OF_OUTPUT] is True for name, of_one in outputs.items() if _OF_OUTPUT in of_one}
    return BinaryOutputs(parameters.get(_OF_ALL_OUTPUTS) is True, named)


def without_binary(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return parameters without those on the form of the request and of its response."""
    names = parameters.keys() & {BINARY_DATA_SIZE, _OF_OUTPUT, _OF_ALL_OUTPUTS}
    return {name: value for name, value in parameters.items() if name not in names} if names else parameters
