"""Protobuf's wire format, as far as the gRPC port needs it: https://protobuf.dev/programming-guides/encoding/.

protobuf's own parser makes an object of 70 to 90 bytes from two bytes that an empty message takes: a request of 10 MiB
would become 480 MB. Here the number of fields is bounded before any of them is kept.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache

from opensearch_ml_stream.connectors.errors import InvalidRequest

MAX_FIELDS = 40_000  # of a message with all that is in it, or one for some bytes of it
_MAX_FIELD_NUMBER = (1 << 29) - 1
_VARINT, _FIXED64, _LENGTH_DELIMITED, _FIXED32 = 0, 1, 2, 5
_GROUPS = (3, 4)  # their beginning and end: proto3 has none, but protobuf's parser skips those of proto2
_FIXED_LENGTHS = {_FIXED64: 8, _FIXED32: 4}
_MAX_VARINT_BYTES = 10


Shape = Mapping[int, "Shape"]
"""The fields of a message that are messages, by their numbers."""


class FieldReader:
    """Reads the fields of one message and of the messages in it, as many as there may be.

    `size` is the message's. Where it has more than MAX_FIELDS, each must come with `bytes_a_field` bytes on average.
    """

    __slots__ = ("_left", "_limit")

    def __init__(self, size: int, bytes_a_field: int = 40) -> None:
        self._limit = self._left = max(MAX_FIELDS, size // bytes_a_field)

    def fields(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield number and content of each string, bytes and message; skip the numbers, which nothing here asks for.

        InvalidRequest for what is no protobuf, and for more fields than there may be.
        """
        at, end = 0, len(data)
        while at < end:
            self._left -= 1
            if self._left < 0:
                raise InvalidRequest(f"The request has more than {self._limit} fields, the limit for its size")
            tag, at = _read_varint(data, at)
            number, wire_type = tag >> 3, tag & 7
            if not 0 < number <= _MAX_FIELD_NUMBER:
                raise _malformed()
            if wire_type == _LENGTH_DELIMITED:
                length, at = _read_varint(data, at)
                if length > end - at:
                    raise _malformed()
                yield number, data[at : at + length]
                at += length
            elif wire_type == _VARINT:
                _, at = _read_varint(data, at)
            elif (length := _FIXED_LENGTHS.get(wire_type, 0)) and length <= end - at:
                at += length
            else:  # a group, which proto3 does not have, or nothing at all
                raise _malformed()


def check_field_count(data: bytes, shape: Shape, bytes_a_field: int = 8) -> None:
    """Raise InvalidRequest if a message, with all that is in it, has more fields than there may be.

    Whether it is protobuf is else for its parser to say. It takes up to 45 ms for each MiB.
    """
    limit = max(MAX_FIELDS, len(data) // bytes_a_field)
    if len(data) > limit and _fields_left(data, 0, len(data), shape, limit) < 0:
        raise InvalidRequest(f"The request has more than {limit} fields, the limit for its size")


def _fields_left(data: bytes, at: int, end: int, shape: Shape, left: int) -> int:
    """Return how many of `left` fields there may be besides those of a message; negative if it has more.

    A loop of its own, as FieldReader takes four times as long.
    """
    while at < end and left >= 0:
        left -= 1
        tag, at = (data[at], at + 1) if data[at] < 0x80 else _read_varint(data, at)
        wire_type = tag & 7
        if wire_type == _VARINT:
            _, at = _read_varint(data, at)
        elif wire_type == _LENGTH_DELIMITED and at < end:
            length, at = (data[at], at + 1) if data[at] < 0x80 else _read_varint(data, at)
            if length and (inner := shape.get(tag >> 3)) is not None:
                left = _fields_left(data, at, min(at + length, end), inner, left)
            at += length
        elif wire_type in _GROUPS:  # the parser would read what stands behind it
            raise _malformed()
        else:
            at += _FIXED_LENGTHS.get(wire_type, end)
    return left


def text(content: bytes, name: str) -> str:
    """Return a string's content. InvalidRequest, which names the field, if it is not UTF-8."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise InvalidRequest(f"{name} is not UTF-8") from None


def length_delimited(tag: bytes, content: bytes) -> bytes:
    """Encode a string or a message as a field; `tag` holds its number and wire type."""
    return tag + varint(len(content)) + content


@lru_cache(maxsize=1024)
def varint(number: int) -> bytes:
    """Encode a number that is not negative."""
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the number that begins at a position, and the position behind it."""
    number = shift = 0
    for position in range(at, min(at + _MAX_VARINT_BYTES, len(data))):
        byte = data[position]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, position + 1
        shift += 7
    raise _malformed()


def _malformed() -> InvalidRequest:
    return InvalidRequest("The request is not a protobuf message", type="parse_exception")
