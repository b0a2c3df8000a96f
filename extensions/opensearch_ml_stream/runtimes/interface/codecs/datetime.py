"""Times as BYTES tensors in ISO 8601."""

from datetime import datetime
from typing import Any, ClassVar, Union

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
class DatetimeCodec(InputCodec):
    """A list of times, or of their ISO texts, as a BYTES tensor [n, 1]."""

    ContentType: ClassVar[str] = "datetime"
    TypeHint: ClassVar[Any] = list[Union[str, datetime]]  # noqa: UP007  # as models write it

    @classmethod
    def can_encode(cls, payload: Any) -> bool:
        """Tell whether the payload is a list of times."""
        return is_list_of(payload, datetime)

    @classmethod
    def encode_output(
        cls, name: str, payload: list[str | datetime], use_bytes: bool = True, **kwargs: Any
    ) -> ResponseOutput:
        """Encode times as bytes, or as text where `use_bytes` is off."""
        texts = (element if isinstance(element, str) else element.isoformat() for element in payload)
        return bytes_output(name, (text.encode("ascii") for text in texts) if use_bytes else texts, cls.ContentType)

    @classmethod
    def decode_output(cls, response_output: ResponseOutput) -> list[datetime]:
        """Decode the times."""
        return [_decoded(element) for element in as_list(response_output.data.root)]

    @classmethod
    def encode_input(
        cls, name: str, payload: list[str | datetime], use_bytes: bool = True, **kwargs: Any
    ) -> RequestInput:
        """Encode times as bytes, or as text where `use_bytes` is off."""
        return as_input(cls.encode_output(name, payload, use_bytes))

    @classmethod
    def decode_input(cls, request_input: RequestInput) -> list[datetime]:
        """Decode the times."""
        return [_decoded(element) for element in as_list(request_input.data.root)]


def _decoded(element: ListElement) -> datetime:
    return datetime.fromisoformat(element if isinstance(element, str) else element.decode("ascii"))
