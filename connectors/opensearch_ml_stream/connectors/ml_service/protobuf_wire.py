"""Protobuf's wire format, as far as `MLService` needs it: https://protobuf.dev/programming-guides/encoding/.

protobuf's own parser makes an object of 70 bytes from two bytes that an empty message takes: a request of 10 MiB would
become 360 MB. Here the number of fields is bounded before any of them is kept.
"""

from collections.abc import Iterator
from functools import lru_cache

from opensearch_ml_stream.connectors.errors import InvalidRequest

MAX_FIELDS = 40_000  # of a message with all that is in it, or one for each 40 bytes
_BYTES_A_FIELD = 40
_MAX_FIELD_NUMBER = (1 << 29) - 1
_VARINT, _FIXED64, _LENGTH_DELIMITED, _FIXED32 = 0, 1, 2, 5
_FIXED_LENGTHS = {_FIXED64: 8, _FIXED32: 4}
_MAX_VARINT_BYTES = 10


class FieldReader:
    """Reads the fields of one message and of the messages in it, as many as a message of its size may have."""

    __slots__ = ("_left", "_limit")

    def __init__(self, size: int) -> None:
        self._limit = self._left = max(MAX_FIELDS, size // _BYTES_A_FIELD)

    def fields(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield number and content of each string, bytes and message; skip the numbers, which nothing here asks for.

        InvalidRequest for what is no protobuf, and for more fields than there may be.
        """
        at = 0
        while at < len(data):
            self._left -= 1
            if self._left < 0:
                raise InvalidRequest(f"The request has more than {self._limit} fields, the limit for its size")
            tag, at = _read_varint(data, at)
            number, wire_type = tag >> 3, tag & 7
            if not 0 < number <= _MAX_FIELD_NUMBER:
                raise _malformed()
            if wire_type == _LENGTH_DELIMITED:
                length, at = _read_varint(data, at)
                if length > len(data) - at:
                    raise _malformed()
                yield number, data[at : at + length]
                at += length
            elif wire_type == _VARINT:
                _, at = _read_varint(data, at)
            elif (length := _FIXED_LENGTHS.get(wire_type, 0)) and length <= len(data) - at:
                at += length
            else:  # a group, which proto3 does not have, or nothing at all
                raise _malformed()


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
