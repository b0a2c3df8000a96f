"""Tells clients of Triton from those of MLServer, as the two read a stream's messages in different forms.

A client of Triton can be recognized by request parameters, or by metadata of the call, that only Triton knows
(triton-inference-server: client, src/python/library/tritonclient/grpc/_utils.py; server, docs/customization_guide).
By default it sends none of these, but raw contents without a content type. Triton has no content types, while the
codecs of MLServer always write one, for raw contents, too.
"""

import re

from starlette.types import Scope

# A parameter as bytes: tag, length and name, then its value, an InferParameter.
_PARAMETER = re.compile(rb"\x0a.(?:triton_|sequence_(?:id|start|end)\x12)", re.DOTALL)
_CONTENT_TYPE = b"\x0a\x0ccontent_type\x12"
_CONTENT_TYPE_OF_TENSOR = re.compile(rb"\x22." + _CONTENT_TYPE, re.DOTALL)  # an entry of its parameters
_BEFORE_CONTENTS = 4096  # bytes of a tensor in which its own fields are
_WANTS_EMPTY_FINAL = b"\x0a\x22triton_enable_empty_final_response\x12\x02\x08\x01"
_METADATA_PREFIX = b"triton_"
_ERRORS_AS_STATUS = (b"triton_grpc_error", b"true")


def is_tritons_call(scope: Scope) -> bool:
    """Whether the metadata of a call are those of a client of Triton."""
    return any(name.startswith(_METADATA_PREFIX) for name, _ in scope["headers"])


def is_tritons_parameter(entry: bytes) -> bool:
    """Whether an entry of a ModelInferRequest's parameters is one that only clients of Triton send."""
    return _PARAMETER.match(entry) is not None


def is_content_type(entry: bytes) -> bool:
    """Whether an entry of the parameters is the content type of all tensors."""
    return entry.startswith(_CONTENT_TYPE)


def has_content_type(tensor: bytes) -> bool:
    """Whether an input has a content type, as MLServer's codecs write it."""
    return _CONTENT_TYPE_OF_TENSOR.search(tensor, 0, _BEFORE_CONTENTS) is not None


def wants_empty_final(entry: bytes) -> bool:
    """Whether an entry of the parameters asks for a last response without outputs."""
    return entry == _WANTS_EMPTY_FINAL


def wants_status(scope: Scope) -> bool:
    """Whether the client asks for a status in place of a message of an error."""
    return _ERRORS_AS_STATUS in scope["headers"]
