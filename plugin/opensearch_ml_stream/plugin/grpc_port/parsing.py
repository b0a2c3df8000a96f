"""Parse the messages of calls."""

from typing import Any

from google.protobuf.message import DecodeError

from opensearch_ml_stream.connectors.errors import InvalidRequest

MAX_SMALL_BYTES = 64 * 1024  # of a message without tensors, which is parsed in the event loop


def parse(message_class: Any, data: bytes) -> Any:
    """Return a message without tensors; InvalidRequest if the bytes are none of its class, or too many."""
    if len(data) > MAX_SMALL_BYTES:
        name = message_class.DESCRIPTOR.full_name
        raise InvalidRequest(f"A {name} may have {MAX_SMALL_BYTES} bytes; this one has {len(data)}")
    return parse_message(message_class, data)


def parse_message(message_class: Any, data: bytes) -> Any:
    """Return a message; InvalidRequest if the bytes are none of its class."""
    try:
        return message_class.FromString(data)
    except DecodeError:
        raise InvalidRequest(f"The message is no {message_class.DESCRIPTOR.full_name}") from None
