"""Tensors of lists of bytes or text, and the same tensor in a request as in a response."""

from collections.abc import Iterable
from typing import Any

from opensearch_ml_stream.runtimes.interface.types import Parameters, RequestInput, ResponseOutput


def bytes_output(name: str, data: Iterable[Any], content_type: str) -> ResponseOutput:
    """Make a BYTES tensor of shape [n, 1]."""
    elements = list(data)
    return ResponseOutput(
        name=name,
        datatype="BYTES",
        shape=[len(elements), 1],
        data=elements,
        parameters=Parameters(content_type=content_type),
    )


def as_input(output: ResponseOutput) -> RequestInput:
    """Make the tensor of a request that a response's tensor is."""
    given = {"parameters": output.parameters} if output.parameters is not None else {}
    return RequestInput(name=output.name, datatype=output.datatype, shape=output.shape, data=output.data, **given)
