"""SageMaker InvokeEndpointWithResponseStream: frames that hold the bytes of whatever the container streams.

https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_runtime_InvokeEndpointWithResponseStream.html. The
container's own framing and dialect are told by its bytes, or chosen by `_stream`.
"""

from collections.abc import Callable
from functools import partial

from opensearch_ml_stream.connectors.decoding.contract import Event, Framing
from opensearch_ml_stream.connectors.decoding.framing.aws_eventstream import AWSEventStreamFraming
from opensearch_ml_stream.connectors.decoding.framing.sniffing import SniffedFraming
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.providers.model_hosts.dialect_sniffing import SniffedDialect
from opensearch_ml_stream.connectors.stream_spec import Enable, StreamSpec


class PayloadPartFraming:
    """Events of `inner`, which is fed with the payloads of the `PayloadPart` frames."""

    __slots__ = ("_frames", "_inner", "error")

    def __init__(self, inner: Callable[[], Framing] = SniffedFraming) -> None:
        self._frames = AWSEventStreamFraming()
        self._inner = inner()
        self.error: UpstreamError | None = None

    def feed(self, data: bytes) -> list[Event]:
        events: list[Event] = []
        for frame in self._frames.feed(data):
            if frame.name in ("PayloadPart", ""):
                events += self._inner.feed(frame.data)
        self.error = self._inner.error or self._frames.error
        return events

    def close(self) -> list[Event]:
        self._frames.close()
        events = [] if self._frames.error else self._inner.close()
        self.error = self._frames.error or self._inner.error
        return events


def sagemaker(inner: StreamSpec) -> StreamSpec:
    """SageMaker's stream with `inner` in its frames; only the URL turns it on, `inner`'s body fields say how."""
    return StreamSpec(
        name=f"{SAGEMAKER.name}+{inner.name}",
        enable=Enable(body=inner.enable.body, drop=inner.enable.drop, url=SAGEMAKER.enable.url),
        framing=partial(PayloadPartFraming, inner.framing),
        provider=inner.provider,
    )


SAGEMAKER = StreamSpec(
    name="sagemaker/invocations",
    enable=Enable(url=(("/invocations", "/invocations-response-stream"),)),
    framing=PayloadPartFraming,
    provider=partial(SniffedDialect, framed=True),
)
