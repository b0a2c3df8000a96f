"""Amazon Bedrock: Converse (`bedrock_converse`), InvokeModel, OpenAI's interface.

InvokeModelWithResponseStream has the events of any hosted model, in base64:
https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_InvokeModelWithResponseStream.html. Bedrock adds its
token counts (`amazon-bedrock-invocationMetrics`) to the last event. The model's dialect is recognised by its events, so
that inference profiles, provisioned and imported models work, too.
"""

from base64 import b64decode
from dataclasses import replace
from typing import Any

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, Usage
from opensearch_ml_stream.connectors.conversation.dialects.anthropic_messages import HOSTED_MESSAGES
from opensearch_ml_stream.connectors.decoding import event_fields
from opensearch_ml_stream.connectors.decoding.aws_eventstream import AWSEventStreamFraming
from opensearch_ml_stream.connectors.decoding.contract import Finishing, Outcome
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.event import Event
from opensearch_ml_stream.connectors.provider import Interface, Provider
from opensearch_ml_stream.connectors.providers.bedrock_converse import (
    BEDROCK_CONVERSE,
    CLAUDE_CONVERSE,
    CONVERSE,
    WHOLE_CONVERSE,
)
from opensearch_ml_stream.connectors.providers.bedrock_text_models import GUARDRAIL_ACTION, INTERVENED
from opensearch_ml_stream.connectors.providers.detected_dialect import DetectedDialect
from opensearch_ml_stream.connectors.providers.openai_chat import OPENAI_CHAT
from opensearch_ml_stream.connectors.stream_spec import Enable, StreamSpec

_METRICS = "amazon-bedrock-invocationMetrics"


class ChunkFraming:
    """The model's events, out of the `chunk` frames that hold them; other frames hold nothing of the response."""

    __slots__ = ("_frames", "error")

    def __init__(self) -> None:
        self._frames = AWSEventStreamFraming()
        self.error: UpstreamError | None = None

    def feed(self, data: bytes) -> list[Event]:
        """Return the model's events in the frames that end within `data`."""
        frames = self._frames.feed(data)
        self.error = self._frames.error
        return [Event("", _model_event(frame)) for frame in frames if frame.name == "chunk"]

    def close(self) -> list[Event]:
        """Set `error` if the body ended within a frame."""
        self._frames.close()
        self.error = self._frames.error
        return []


def _model_event(frame: Event) -> bytes:
    """Return the event in a frame, what no dialect can read if there is none."""
    try:
        return b64decode(frame.payload["bytes"], validate=True)
    except (ValueError, KeyError, TypeError):
        return b"(no event in base64)"


class BedrockInvoke:
    """Reads the model's events by its dialect, and what Bedrock adds to them."""

    __slots__ = ("_blocked", "_dialect", "_usage")

    def __init__(self) -> None:
        self._dialect = DetectedDialect()
        self._usage: Usage | None = None
        self._blocked = False

    def read(self, event: Event, chunks: list[Chunk]) -> Outcome | Finishing | None:
        """Append the chunks of the model's event; the dialect decides what ends the stream."""
        if b'"amazon-bedrock-' in event.data:
            self._read_additions(event.payload)
        outcome = self._dialect.read(event, chunks)
        return self._complete(outcome) if isinstance(outcome, Ending) else outcome

    def end_of_input(self) -> Outcome:
        """Return the outcome that the dialect gives, with Bedrock's token counts."""
        outcome = self._dialect.end_of_input()
        return self._complete(outcome) if isinstance(outcome, Ending) else outcome

    def _read_additions(self, payload: Any) -> None:
        metrics = event_fields.mapping(payload.get(_METRICS))
        if metrics:  # whose count of the input leaves out what was read from a cache or written to it
            cached = event_fields.count(metrics.get("cacheReadInputTokenCount"))
            written = event_fields.count(metrics.get("cacheWriteInputTokenCount"))
            usage = Usage(
                input_tokens=event_fields.total(event_fields.count(metrics.get("inputTokenCount")), cached, written),
                output_tokens=event_fields.count(metrics.get("outputTokenCount")),
                cached_tokens=cached,
                cache_write_tokens=written,
            )
            self._usage = usage.after(self._usage)
        self._blocked = self._blocked or payload.get(GUARDRAIL_ACTION) == INTERVENED

    def _complete(self, ending: Ending) -> Ending:
        """Return the ending with Bedrock's additions: its token counts, and whether a guardrail intervened."""
        if self._usage is not None:
            ending = replace(ending, usage=self._usage if ending.usage is None else ending.usage.after(self._usage))
        return replace(ending, finish_reason="content_filter") if self._blocked else ending


BEDROCK_INVOKE = StreamSpec(
    name="bedrock/invoke",
    enable=Enable(url=(("/invoke", "/invoke-with-response-stream"),), drop=("stream", "stream_options")),
    framing=ChunkFraming,
    reader=BedrockInvoke,
)


PROVIDER = Provider(
    interfaces=(
        # Those of a maker's models come first: of two matches that are equally long the first decides.
        Interface(
            ("bedrock/converse/claude",),
            BEDROCK_CONVERSE,
            (r"/model/.*anthropic.*/converse(-stream)?\?",),
            dialect=CLAUDE_CONVERSE,
        ),
        # What such a resource runs, only the name says.
        Interface(
            (),
            BEDROCK_CONVERSE,
            (r"/model/arn.*(application-inference-profile|provisioned-model|prompt-router).*/converse(-stream)?\?",),
            dialect=CONVERSE,
            is_shared=True,
        ),
        Interface(
            ("bedrock/converse",),
            BEDROCK_CONVERSE,
            (r"/model/.+/converse(-stream)?\?",),
            WHOLE_CONVERSE,
            CONVERSE,
        ),
        Interface(
            (), BEDROCK_INVOKE, (r"/model/.*anthropic.*/invoke(-with-response-stream)?\?",), dialect=HOSTED_MESSAGES
        ),
        Interface((BEDROCK_INVOKE.name,), BEDROCK_INVOKE, (r"/model/.+/invoke(-with-response-stream)?\?",)),
        Interface(("bedrock/openai/v1/chat/completions",), OPENAI_CHAT),
    ),
    trusted_endpoints=(r"^https://bedrock-runtime\.[a-z0-9-]+\.amazonaws\.com(\.cn)?/.*$",),
)
