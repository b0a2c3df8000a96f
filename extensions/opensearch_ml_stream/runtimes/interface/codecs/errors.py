"""Errors of codecs; a client sees status 400."""

from collections.abc import Iterable
from typing import Any

from opensearch_ml_stream.runtimes.interface.errors import MLServerError
from opensearch_ml_stream.runtimes.interface.types import RequestInput


class CodecNotFound(MLServerError):
    """There is no codec for a value."""

    def __init__(
        self,
        name: str | None = None,
        payload_type: str | None = None,
        is_input: bool = False,
        is_request: bool = False,
    ) -> None:
        of_request, of_tensor = ("input request", "input field") if is_input else ("output response", "output field")
        named = f"name '{name}'" if name else ""
        typed = f"type {payload_type}" if payload_type else ""
        which = " and ".join(filter(None, (named, typed)))
        field = of_request if is_request else of_tensor
        super().__init__(f"Codec not found for {field} {'with ' if which else ''}{which}")


class CodecError(MLServerError):
    """A value cannot be encoded or decoded."""

    def __init__(self, msg: str) -> None:
        super().__init__(f"There was an error encoding / decoding the payload: {msg}")


class OutputNotFound(MLServerError):
    """A method returns a value that its type hint does not have."""

    def __init__(self, output_idx: int, output_type: type[Any], output_hints: Iterable[Any]) -> None:
        expected = ", ".join(f"'{hint}'" for hint in output_hints)
        super().__init__(
            f"Unexpected output value at position '{output_idx}' ({output_type}). "
            f"Expected outputs are {expected} outputs."
        )


class InputsNotFound(MLServerError):
    """A request has tensors that the method does not take."""

    def __init__(self, inputs: Iterable[RequestInput], input_hints: Iterable[str]) -> None:
        names = ", ".join(f"'{tensor.name}'" for tensor in inputs)
        available = ", ".join(f"'{name}'" for name in input_hints)
        super().__init__(f"Input {names} was not found. Available inputs are {available}.")
