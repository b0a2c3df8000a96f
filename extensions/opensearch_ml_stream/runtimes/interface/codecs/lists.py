"""Lists of bytes or text, single values in place of lists, and the tensors of either."""

from collections.abc import Iterable, Iterator
from typing import Any

from opensearch_ml_stream.runtimes.interface.types import Parameters, RequestInput, ResponseOutput

ListElement = bytes | str
ListPayload = ListElement | list[ListElement]


def is_list_of(payload: Any, instance_type: type[Any]) -> bool:
    """Tell whether the payload is a list that holds nothing but instances of the type."""
    return isinstance(payload, list) and all(isinstance(element, instance_type) for element in payload)


def as_list(payload: ListPayload) -> Iterator[ListElement]:
    """Yield a list's elements, or the one element."""
    if isinstance(payload, list):
        yield from payload
    else:
        yield payload


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
