"""Texts as BYTES tensors."""

from typing import Any, ClassVar

from opensearch_ml_stream.runtimes.interface.codecs.base import (
    InputCodec,
    InputCodecLike,
    register_input_codec,
    register_request_codec,
)
from opensearch_ml_stream.runtimes.interface.codecs.decoded import InputOrOutput, SingleInputRequestCodec
from opensearch_ml_stream.runtimes.interface.codecs.lists import as_input, as_list, bytes_output, is_list_of
from opensearch_ml_stream.runtimes.interface.types import RequestInput, ResponseOutput


def encode_str(elem: str) -> bytes:
    """Encode text in UTF-8."""
    return elem.encode()


def decode_str(encoded: Any, str_codec: str = "utf-8") -> Any:
    """Decode text; what is text already, and None, stay; anything else is empty."""
    if isinstance(encoded, bytes):
        return encoded.decode(str_codec)
    return encoded if isinstance(encoded, str) or encoded is None else ""


@register_input_codec
class StringCodec(InputCodec):
    """A list of texts as a BYTES tensor [n, 1]."""

    ContentType: ClassVar[str] = "str"
    TypeHint: ClassVar[Any] = list[str]

    @classmethod
    def can_encode(cls, payload: Any) -> bool:
        """Tell whether the payload is a list of texts."""
        return is_list_of(payload, str)

    @classmethod
    def encode_output(cls, name: str, payload: list[str], use_bytes: bool = True, **kwargs: Any) -> ResponseOutput:
        """Encode texts as bytes, or as text where `use_bytes` is off."""
        return bytes_output(name, map(encode_str, payload) if use_bytes else payload, cls.ContentType)

    @classmethod
    def decode_output(cls, response_output: ResponseOutput) -> list[str]:
        """Decode the texts."""
        return _texts(response_output)

    @classmethod
    def encode_input(cls, name: str, payload: list[str], use_bytes: bool = True, **kwargs: Any) -> RequestInput:
        """Encode texts as bytes, or as text where `use_bytes` is off."""
        return as_input(cls.encode_output(name, payload, use_bytes))

    @classmethod
    def decode_input(cls, request_input: RequestInput) -> list[str]:
        """Decode the texts."""
        return _texts(request_input)


def _texts(tensor: InputOrOutput) -> list[str]:
    return [decode_str(element) for element in as_list(tensor.data.root)]


@register_request_codec
class StringRequestCodec(SingleInputRequestCodec):
    """A list of texts as a request's or a response's one tensor."""

    InputCodec: ClassVar[InputCodecLike | None] = StringCodec
    ContentType: ClassVar[str] = StringCodec.ContentType
    TypeHint: ClassVar[Any] = list[str]
