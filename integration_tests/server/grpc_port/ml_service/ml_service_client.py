"""OpenSearch's MLService as a program calls it, with the server's own messages."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc

from opensearch_ml_stream.extensions.ml_service.ml_service import ML_SERVICE, message_class

METHOD = f"/{ML_SERVICE}/PredictModelStream"
Request = message_class("org.opensearch.protobufs.MlPredictModelStreamRequest")
Response = message_class("org.opensearch.protobufs.PredictResponse")
QUESTION = {"messages": [{"role": "user", "content": "hi"}]}


@dataclass(frozen=True)
class Streamed:
    """What came of a call. `results` are the outputs beside the text, in order; `ending` is the last message's."""

    texts: list[str] = field(default_factory=list)
    last: list[bool] = field(default_factory=list)
    results: list[tuple[str, str]] = field(default_factory=list)
    status: grpc.StatusCode = grpc.StatusCode.OK
    details: str = ""
    trailers: Mapping[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return "".join(self.texts)

    @property
    def ending(self) -> dict[str, Any]:
        """How the stream ended, by its last message, the only one that says it is."""
        assert self.last == [False] * (len(self.last) - 1) + [True]
        name, result = self.results[-1]
        assert name == "ending"
        ending: dict[str, Any] = json.loads(result)
        return ending


def request(model_id: str, parameters: Mapping[str, Any] = QUESTION) -> Any:
    return Request(model_id=model_id, ml_predict_model_stream_request_body={"parameters": parameters})


class MLServiceClient:
    """Calls over one channel; `metadata` go with each."""

    def __init__(self, channel: grpc.Channel, metadata: Sequence[tuple[str, str]] = ()) -> None:
        self.channel = channel
        self._metadata = tuple(metadata)
        self._method = channel.unary_stream(METHOD, Request.SerializeToString, Response.FromString)

    def start(self, message: Any, timeout: float | None = 30) -> Any:
        """The call, an iterator of responses."""
        return self._method(message, timeout=timeout, metadata=self._metadata)

    def predict(self, model_id: str, parameters: Mapping[str, Any] = QUESTION, timeout: float = 30) -> Streamed:
        """The whole stream."""
        return read(self.start(request(model_id, parameters), timeout))

    def send(self, data: bytes) -> Streamed:
        """What comes of any bytes as the request's message."""
        method = self.channel.unary_stream(METHOD, None, Response.FromString)
        return read(method(data, timeout=30, metadata=self._metadata))


@contextmanager
def ml_service_client(target: str, *metadata: tuple[str, str]) -> Iterator[MLServiceClient]:
    with grpc.insecure_channel(target) as channel:
        yield MLServiceClient(channel, metadata)


def read(call: Any) -> Streamed:
    """All that a call gives until it has its status."""
    texts: list[str] = []
    last: list[bool] = []
    results: list[tuple[str, str]] = []
    try:
        for response in call:
            ((first, *others),) = (result.output for result in response.inference_results)
            assert first.name == "response"
            texts.append(first.data_as_map.content)
            last.append(first.data_as_map.is_last)
            results += [(other.name, other.result) for other in others]
    except grpc.RpcError:
        pass  # the call has its status
    trailers = {pair.key: pair.value for pair in call.trailing_metadata() or ()}
    return Streamed(texts, last, results, call.code(), call.details() or "", trailers)
