"""A stub of the V2 protocol's gRPC service, made of the messages that the server itself uses."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from opensearch_ml_stream.extensions.v2.grpc import inference_messages as messages


@dataclass(frozen=True, slots=True)
class V2Stub:
    """The calls that make inferences."""

    ModelInfer: Callable[[Any], Any]
    ModelStreamInfer: Callable[[Iterable[Any]], Any]


def v2_stub(channel: Any) -> V2Stub:
    path = f"/{messages.INFERENCE_SERVICE}/"
    serializers = {
        "request_serializer": messages.ModelInferRequest.SerializeToString,
        "response_deserializer": messages.ModelInferResponse.FromString,
    }
    return V2Stub(
        channel.unary_unary(path + "ModelInfer", **serializers),
        channel.stream_stream(path + "ModelStreamInfer", **serializers),
    )
