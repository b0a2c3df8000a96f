"""What tells clients of Triton from those of MLServer: the two read a stream's messages in different forms.

A client of Triton shows itself by parameters of a request, or by metadata of the call, that Triton alone knows
(triton-inference-server: client, src/python/library/tritonclient/grpc/_utils.py; server, docs/customization_guide).
The raw contents that it sends tell nothing: clients of MLServer send them too.
"""

import re

from starlette.types import Scope

# A parameter as bytes: its name behind tag and length, then its value, an InferParameter.
_PARAMETER = re.compile(rb"\x0a.(?:triton_|sequence_(?:id|start|end)\x12)", re.DOTALL)
_WANTS_EMPTY_FINAL = b"\x0a\x22triton_enable_empty_final_response\x12\x02\x08\x01"
_METADATA_PREFIX = b"triton_"
_ERRORS_AS_STATUS = (b"triton_grpc_error", b"true")


def is_tritons_call(scope: Scope) -> bool:
    """Whether the metadata of a call are those of a client of Triton."""
    return any(name.startswith(_METADATA_PREFIX) for name, _ in scope["headers"])


def is_tritons_parameter(entry: bytes) -> bool:
    """Whether an entry of a ModelInferRequest's parameters is one that only clients of Triton send."""
    return _PARAMETER.match(entry) is not None


def wants_empty_final(entry: bytes) -> bool:
    """Whether an entry of the parameters asks for a last response without outputs."""
    return entry == _WANTS_EMPTY_FINAL


def wants_status(scope: Scope) -> bool:
    """Whether the client asks for a status in place of a message of an error."""
    return _ERRORS_AS_STATUS in scope["headers"]
