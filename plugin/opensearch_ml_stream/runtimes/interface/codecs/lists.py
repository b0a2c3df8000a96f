"""Lists of one type, and single values in place of lists."""

from collections.abc import Iterator
from typing import Any

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
