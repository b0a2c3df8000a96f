"""The public face of V2: all that extensions which require it may import."""

from opensearch_ml_stream.extensions.v2.http.headers import handler_headers, readable_header_list
from opensearch_ml_stream.extensions.v2.http.use_cases import InferenceModels, UnreadRequest
from opensearch_ml_stream.extensions.v2.protocol.chat_messages import chat_messages, is_chat
from opensearch_ml_stream.extensions.v2.protocol.json_responses import tensor_object
from opensearch_ml_stream.extensions.v2.protocol.messages import InferenceRequest, RequestedOutput, Tensor
from opensearch_ml_stream.extensions.v2.protocol.predict_inputs import HEADERS
from opensearch_ml_stream.extensions.v2.protocol.tensor_parameters import json_text, texts, to_parameter
from opensearch_ml_stream.extensions.v2.service.local_models import (
    KnowsReadiness,
    RaisedByModel,
    SpeaksV2,
    Unloaded,
    V2Repository,
    own_errors,
)

__all__ = [
    "HEADERS",
    "InferenceModels",
    "InferenceRequest",
    "KnowsReadiness",
    "RaisedByModel",
    "RequestedOutput",
    "SpeaksV2",
    "Tensor",
    "Unloaded",
    "UnreadRequest",
    "V2Repository",
    "chat_messages",
    "handler_headers",
    "is_chat",
    "json_text",
    "own_errors",
    "readable_header_list",
    "tensor_object",
    "texts",
    "to_parameter",
]
