"""IBM watsonx.ai: chat and text generation, each with a path of its own for streams.

https://cloud.ibm.com/apidocs/watsonx-ai#text-chat-stream and #text-generation-stream. Neither has a terminator. The
events of chat are OpenAI's; those of generation hold a piece of text each, and the number of tokens so far. Errors are
events named `error` (com.ibm.watsonx.ai of IBM/watsonx-ai-java-sdk).
"""

from typing import Any

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, Usage
from opensearch_ml_stream.connectors.conversation.dialects import openai_compatible
from opensearch_ml_stream.connectors.decoding import event_fields
from opensearch_ml_stream.connectors.decoding.contract import FINISHING, Finishing, Outcome, truncated
from opensearch_ml_stream.connectors.decoding.finish_reasons import finish_reason, native_finish_reason
from opensearch_ml_stream.connectors.decoding.sse import SSEFraming
from opensearch_ml_stream.connectors.event import Event
from opensearch_ml_stream.connectors.provider import Interface, Provider
from opensearch_ml_stream.connectors.provider_errors import error_without_result
from opensearch_ml_stream.connectors.providers.openai_chat import OpenAIChat
from opensearch_ml_stream.connectors.stream_spec import Enable, StreamSpec


class WatsonxGeneration:
    """Reads the first of an event's `results`."""

    __slots__ = ("_finish", "_input_tokens", "_model", "_output_tokens")

    def __init__(self) -> None:
        self._finish: str | None = None
        self._input_tokens: int | None = None
        self._output_tokens: int | None = None
        self._model: str | None = None

    def read(self, event: Event, chunks: list[Chunk]) -> Outcome | Finishing | None:
        """Append the event's text; an error ends the stream."""
        payload: Any = event.payload
        self._model = self._model or event_fields.name(payload.get("model_id"))
        if results := payload.get("results"):
            self._read_result(results[0], chunks)
        elif (error := error_without_result(payload)) is not None:
            return error
        return FINISHING if self._finish is not None else None

    def end_of_input(self) -> Outcome:
        """Return a good ending if a stop reason has come."""
        if self._finish is None:
            return truncated("its stop_reason")
        counts = self._input_tokens, self._output_tokens
        usage = None if counts == (None, None) else Usage(*counts)
        return Ending(finish_reason(self._finish), self._finish, usage, self._model)

    def _read_result(self, result: dict[str, Any], chunks: list[Chunk]) -> None:
        if text := event_fields.text(result["generated_text"]):
            chunks.append(Chunk(text))
        self._finish = native_finish_reason(result.get("stop_reason")) or self._finish
        # Only the first event has the number of input tokens, those after it have 0.
        self._input_tokens = event_fields.count(result.get("input_token_count")) or self._input_tokens
        self._output_tokens = event_fields.count(result.get("generated_token_count")) or self._output_tokens


_DROP = ("stream", "stream_options")

WATSONX_CHAT = StreamSpec(
    name="watsonx/text/chat",
    enable=Enable(url=(("/text/chat", "/text/chat_stream"),), drop=_DROP),
    framing=SSEFraming,
    reader=OpenAIChat,
)

WATSONX_GENERATION = StreamSpec(
    name="watsonx/text/generation",
    enable=Enable(url=(("/text/generation", "/text/generation_stream"),), drop=_DROP),
    framing=SSEFraming,
    reader=WatsonxGeneration,
)

PROVIDER = Provider(
    interfaces=(
        Interface((WATSONX_CHAT.name,), WATSONX_CHAT, (r"/text/chat(_stream)?\?",), dialect=openai_compatible.WATSONX),
        Interface((WATSONX_GENERATION.name,), WATSONX_GENERATION, (r"/text/generation(_stream)?\?",)),
    ),
    trusted_endpoints=(r"^https://[a-z0-9-]+\.ml\.cloud\.ibm\.com/.*$",),
)
