"""SageMaker InvokeEndpointWithResponseStream: AWS frames that hold the bytes of whatever the container streams.

https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_runtime_InvokeEndpointWithResponseStream.html. The
container's own framing and dialect are recognised by its first bytes and event, or named in `_stream`.
"""

from collections.abc import Callable
from functools import partial

from opensearch_ml_stream.connectors.decoding.aws_eventstream import AWSEventStreamFraming
from opensearch_ml_stream.connectors.decoding.contract import Framing
from opensearch_ml_stream.connectors.decoding.detected_framing import DetectedFraming
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.event import Event
from opensearch_ml_stream.connectors.provider import Interface, Provider
from opensearch_ml_stream.connectors.providers.detected_dialect import DetectedDialect
from opensearch_ml_stream.connectors.stream_spec import Enable, StreamSpec


class PayloadPartFraming:
    """Events of the container's framing, which is fed with the payloads of the `PayloadPart` frames."""

    __slots__ = ("_frames", "_inner", "error")

    def __init__(self, inner: Callable[[], Framing] = DetectedFraming) -> None:
        self._frames = AWSEventStreamFraming()
        self._inner = inner()
        self.error: UpstreamError | None = None

    def feed(self, data: bytes) -> list[Event]:
        """Return the container's events that end within `data`."""
        events: list[Event] = []
        for frame in self._frames.feed(data):
            if frame.name in ("PayloadPart", ""):
                events += self._inner.feed(frame.data)
        self.error = self._inner.error or self._frames.error
        return events

    def close(self) -> list[Event]:
        """Return the container's last events; none if the body ended within a frame."""
        self._frames.close()
        events = [] if self._frames.error else self._inner.close()
        self.error = self._frames.error or self._inner.error
        return events


def sagemaker_spec(inner: StreamSpec) -> StreamSpec:
    """Return the spec of a SageMaker stream whose frames hold a stream of `inner`.

    The request is changed as SageMaker's spec says in its URL and as `inner` says in its body.
    """
    return StreamSpec(
        name=f"{SAGEMAKER.name}+{inner.name}",
        enable=Enable(
            body=inner.enable.body,
            drop=inner.enable.drop,
            url=SAGEMAKER.enable.url,
            by_default=inner.enable.by_default,
        ),
        framing=partial(PayloadPartFraming, inner.framing),
        reader=inner.reader,
    )


SAGEMAKER = StreamSpec(
    name="sagemaker/invocations",
    enable=Enable(url=(("/invocations", "/invocations-response-stream"),)),
    framing=PayloadPartFraming,
    reader=DetectedDialect,
)

PROVIDER = Provider(
    interfaces=(Interface((SAGEMAKER.name,), SAGEMAKER, (r"/endpoints/.+/invocations(-response-stream)?\?",)),),
    trusted_endpoints=(
        r"^https://runtime\.sagemaker\.[a-z0-9-]+\.amazonaws\.com(\.cn)?/.*$",
        r"^https://api\.sagemaker\.[a-z0-9-]+\.amazonaws\.com(\.cn)?/.*$",
    ),
    model_parameters=frozenset({"endpoint_name"}),
)
