"""Codecs, as `mlserver.codecs` has them. The first that fits is used, in the order of these imports."""

from opensearch_ml_stream.runtimes.interface.codecs.string import StringCodec, StringRequestCodec  # isort: skip
from opensearch_ml_stream.runtimes.interface.codecs.numpy import NumpyCodec, NumpyRequestCodec  # isort: skip
from opensearch_ml_stream.runtimes.interface.codecs.pandas import PandasCodec  # isort: skip
from opensearch_ml_stream.runtimes.interface.codecs.base64 import Base64Codec  # isort: skip
from opensearch_ml_stream.runtimes.interface.codecs.datetime import DatetimeCodec  # isort: skip
from opensearch_ml_stream.runtimes.interface.codecs.base import (
    InputCodec,
    InputCodecLike,
    RequestCodec,
    RequestCodecLike,
    register_input_codec,
    register_request_codec,
)
from opensearch_ml_stream.runtimes.interface.codecs.decoded import (
    DecodedParameterName,
    decode_inference_request,
    decode_request_input,
    encode_inference_response,
    encode_response_output,
    get_decoded,
    get_decoded_or_raw,
    has_decoded,
)
from opensearch_ml_stream.runtimes.interface.codecs.decorator import decode_args
from opensearch_ml_stream.runtimes.interface.codecs.errors import CodecError

__all__ = [
    "Base64Codec",
    "CodecError",
    "DatetimeCodec",
    "DecodedParameterName",
    "InputCodec",
    "InputCodecLike",
    "NumpyCodec",
    "NumpyRequestCodec",
    "PandasCodec",
    "RequestCodec",
    "RequestCodecLike",
    "StringCodec",
    "StringRequestCodec",
    "decode_args",
    "decode_inference_request",
    "decode_request_input",
    "encode_inference_response",
    "encode_response_output",
    "get_decoded",
    "get_decoded_or_raw",
    "has_decoded",
    "register_input_codec",
    "register_request_codec",
]
