"""Codecs: conversions between values of Python and the tensors of requests and responses; and where they are found."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, TypeVar, get_args, get_origin

from opensearch_ml_stream.runtimes.interface.logging import logger
from opensearch_ml_stream.runtimes.interface.types import (
    InferenceRequest,
    InferenceResponse,
    RequestInput,
    ResponseOutput,
)


class InputCodec:
    """Converts between a value and one tensor."""

    ContentType: ClassVar[str] = ""
    TypeHint: ClassVar[Any] = type(None)

    @classmethod
    def can_encode(cls, payload: Any) -> bool:
        """Tell whether the codec is for values such as this."""
        return False

    @classmethod
    def encode_output(cls, name: str, payload: Any, **kwargs: Any) -> ResponseOutput:
        """Encode a value as a tensor of a response."""
        raise NotImplementedError

    @classmethod
    def decode_output(cls, response_output: ResponseOutput) -> Any:
        """Decode a tensor of a response."""
        raise NotImplementedError

    @classmethod
    def encode_input(cls, name: str, payload: Any, **kwargs: Any) -> RequestInput:
        """Encode a value as a tensor of a request."""
        raise NotImplementedError

    @classmethod
    def decode_input(cls, request_input: RequestInput) -> Any:
        """Decode a tensor of a request."""
        raise NotImplementedError

    @classmethod
    def encode(cls, name: str, payload: Any) -> ResponseOutput:
        """Encode a value as `encode_output` does, which is the name to use."""
        logger.warning("DEPRECATED! The encode() method is now deprecated. Use encode_output() instead.")
        return cls.encode_output(name, payload)

    @classmethod
    def decode(cls, request_input: RequestInput) -> Any:
        """Decode a tensor as `decode_input` does, which is the name to use."""
        logger.warning("DEPRECATED! The decode() method is now deprecated. Use decode_input() instead.")
        return cls.decode_input(request_input)


class RequestCodec:
    """Converts between a value and a whole request or response."""

    ContentType: ClassVar[str] = ""
    TypeHint: ClassVar[Any] = type(None)

    @classmethod
    def can_encode(cls, payload: Any) -> bool:
        """Tell whether the codec is for values such as this."""
        return False

    @classmethod
    def encode_response(
        cls, model_name: str, payload: Any, model_version: str | None = None, **kwargs: Any
    ) -> InferenceResponse:
        """Encode a value as a response."""
        raise NotImplementedError

    @classmethod
    def decode_response(cls, response: InferenceResponse) -> Any:
        """Decode a response."""
        raise NotImplementedError

    @classmethod
    def encode_request(cls, payload: Any, **kwargs: Any) -> InferenceRequest:
        """Encode a value as a request."""
        raise NotImplementedError

    @classmethod
    def decode_request(cls, request: InferenceRequest) -> Any:
        """Decode a request."""
        raise NotImplementedError

    @classmethod
    def encode(cls, model_name: str, payload: Any, model_version: str | None = None) -> InferenceResponse:
        """Encode a value as `encode_response` does, which is the name to use."""
        logger.warning("DEPRECATED! The encode() method is now deprecated. Use encode_response() instead.")
        return cls.encode_response(model_name, payload, model_version)

    @classmethod
    def decode(cls, request: InferenceRequest) -> Any:
        """Decode a request as `decode_request` does, which is the name to use."""
        logger.warning("DEPRECATED! The decode() method is now deprecated. Use decode_request() instead.")
        return cls.decode_request(request)


InputCodecLike = type[InputCodec] | InputCodec
RequestCodecLike = type[RequestCodec] | RequestCodec
_Codec = TypeVar("_Codec", InputCodecLike, RequestCodecLike)
_Registered = TypeVar("_Registered")

_input_codecs: dict[str, InputCodecLike] = {}  # by content type, in the order of their registration
_request_codecs: dict[str, RequestCodecLike] = {}


def register_input_codec(codec: _Registered) -> _Registered:
    """Let a codec be found by its content type, its type hint and the values that it encodes."""
    _input_codecs[codec.ContentType] = codec  # type: ignore[attr-defined,assignment]
    return codec


def register_request_codec(codec: _Registered) -> _Registered:
    """Let a codec of whole requests be found by its content type, its type hint and the values that it encodes."""
    _request_codecs[codec.ContentType] = codec  # type: ignore[attr-defined,assignment]
    return codec


def find_input_codec(
    content_type: str | None = None, payload: Any = None, type_hint: Any = None
) -> InputCodecLike | None:
    """Find the codec of a content type, else of a value, else of a type hint."""
    return _found(_input_codecs, content_type, payload, type_hint)


def find_input_codec_by_payload(payload: Any) -> InputCodecLike | None:
    """Find the first codec that encodes a value."""
    return _by_payload(payload, _input_codecs.values())


def find_input_codec_by_type_hint(type_hint: Any) -> InputCodecLike | None:
    """Find the first codec of a type hint."""
    return _by_type_hint(type_hint, _input_codecs.values())


def find_request_codec(
    content_type: str | None = None, payload: Any = None, type_hint: Any = None
) -> RequestCodecLike | None:
    """Find the codec of a content type, else of a value, else of a type hint."""
    return _found(_request_codecs, content_type, payload, type_hint)


def find_request_codec_by_payload(payload: Any) -> RequestCodecLike | None:
    """Find the first codec that encodes a value."""
    return _by_payload(payload, _request_codecs.values())


def find_request_codec_by_type_hint(type_hint: Any) -> RequestCodecLike | None:
    """Find the first codec of a type hint."""
    return _by_type_hint(type_hint, _request_codecs.values())


def _found(codecs: Mapping[str, _Codec], content_type: str | None, payload: Any, type_hint: Any) -> _Codec | None:
    if content_type:
        return codecs.get(content_type)
    if payload is not None:
        return _by_payload(payload, codecs.values())
    return None if type_hint is None else _by_type_hint(type_hint, codecs.values())


def _by_payload(payload: Any, codecs: Iterable[_Codec]) -> _Codec | None:
    return next((codec for codec in codecs if codec.can_encode(payload)), None)


def _by_type_hint(type_hint: Any, codecs: Iterable[_Codec]) -> _Codec | None:
    """Compare what the hints mean: `List[str]` is `list[str]`."""
    sought = (get_origin(type_hint) or type_hint, get_args(type_hint))
    hints = ((codec, codec.TypeHint) for codec in codecs)
    return next((codec for codec, hint in hints if (get_origin(hint) or hint, get_args(hint)) == sought), None)
