"""Bytes as BYTES tensors in base64."""

import base64
import binascii
from typing import Any, ClassVar

from opensearch_ml_stream.runtimes.interface.codecs.base import InputCodec, register_input_codec
from opensearch_ml_stream.runtimes.interface.codecs.lists import (
    ListElement,
    as_input,
    as_list,
    bytes_output,
    is_list_of,
)
from opensearch_ml_stream.runtimes.interface.types import RequestInput, ResponseOutput


@register_input_codec
class Base64Codec(InputCodec):
    """A list of bytes as a BYTES tensor [n, 1] in base64. What is not base64 is decoded to itself."""

    ContentType: ClassVar[str] = "base64"
    TypeHint: ClassVar[Any] = list[bytes]

    @classmethod
    def can_encode(cls, payload: Any) -> bool:
        """Tell whether the payload is a list of bytes."""
        return is_list_of(payload, bytes)

    @classmethod
    def encode_output(cls, name: str, payload: list[bytes], use_bytes: bool = True, **kwargs: Any) -> ResponseOutput:
        """Encode bytes in base64, as bytes or, where `use_bytes` is off, as text."""
        encoded = (base64.b64encode(_as_bytes(element)) for element in payload)
        return bytes_output(name, encoded if use_bytes else map(bytes.decode, encoded), cls.ContentType)

    @classmethod
    def decode_output(cls, response_output: ResponseOutput) -> list[bytes]:
        """Decode the bytes."""
        return [_decoded(element) for element in as_list(response_output.data.root)]

    @classmethod
    def encode_input(cls, name: str, payload: list[bytes], use_bytes: bool = True, **kwargs: Any) -> RequestInput:
        """Encode bytes in base64, as bytes or, where `use_bytes` is off, as text."""
        return as_input(cls.encode_output(name, payload, use_bytes))

    @classmethod
    def decode_input(cls, request_input: RequestInput) -> list[bytes]:
        """Decode the bytes."""
        return [_decoded(element) for element in as_list(request_input.data.root)]


def _as_bytes(element: ListElement) -> bytes:
    return element.encode("ascii") if isinstance(element, str) else element


def _decoded(element: ListElement) -> bytes:
    encoded = _as_bytes(element)
    try:
        return base64.b64decode(encoded, validate=True)
    except binascii.Error:
        return encoded
