"""Streams whose dialect only their events tell: what Bedrock's InvokeModel, SageMaker and `/generate_stream` carry.

The first event's keys choose the provider that reads it and all that follow.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import orjson

from opensearch_ml_stream.connectors.chunks import Chunk, Ending
from opensearch_ml_stream.connectors.decoding import Event, Outcome, Provider, truncated
from opensearch_ml_stream.connectors.plain import PLAIN_TEXT, PlainText
from opensearch_ml_stream.connectors.presets import text_events
from opensearch_ml_stream.connectors.presets.anthropic import Anthropic
from opensearch_ml_stream.connectors.presets.bedrock_converse import BedrockConverse
from opensearch_ml_stream.connectors.presets.cohere import CohereV1, CohereV2
from opensearch_ml_stream.connectors.presets.cumulative_text import CumulativeText
from opensearch_ml_stream.connectors.presets.gemini import Gemini
from opensearch_ml_stream.connectors.presets.ollama import Ollama
from opensearch_ml_stream.connectors.presets.open_inference import OpenInference
from opensearch_ml_stream.connectors.presets.openai_chat import OpenAIChat, read_error
from opensearch_ml_stream.connectors.presets.openai_completions import OpenAICompletions
from opensearch_ml_stream.connectors.presets.openai_responses import OpenAIResponses
from opensearch_ml_stream.connectors.presets.text_generation_inference import TextGenerationInference
from opensearch_ml_stream.connectors.sse import SSEFraming
from opensearch_ml_stream.connectors.stream_spec import Enable, StreamSpec

_CONVERSE_EVENTS = ("messageStart", "contentBlockStart", "contentBlockDelta", "messageStop", "metadata")

# In this order: the first key that an event has decides.
_BY_KEY: tuple[tuple[str, Callable[[], Provider]], ...] = (
    ("event_type", CohereV1),
    ("outputText", partial(text_events.TextEvents, text_events.TITAN)),
    ("generation", partial(text_events.TextEvents, text_events.LLAMA)),
    ("completion", partial(text_events.TextEvents, text_events.CLAUDE_2)),
    ("token", TextGenerationInference),
    ("generated_text", TextGenerationInference),
    ("error_type", TextGenerationInference),
    ("text_output", OpenInference),
    ("is_finished", partial(text_events.TextEvents, text_events.COMMAND)),
    ("done", Ollama),
    ("candidates", Gemini),
    ("promptFeedback", Gemini),
    ("usageMetadata", Gemini),
    *((name, BedrockConverse) for name in _CONVERSE_EVENTS),
    ("text", CumulativeText),
)


class ByShape:
    """`framed`: whether the end of the body is known to be the server's, so that a `[DONE]` is not waited for."""

    __slots__ = ("_framed", "_provider")

    def __init__(self, *, framed: bool = False) -> None:
        self._framed = framed
        self._provider: Provider | None = None

    def read(self, event: Event, chunks: list[Chunk]) -> Outcome | None:
        if self._provider is None:
            if event.data.strip() == b"[DONE]":
                return Ending()
            payload = None if event.name == PLAIN_TEXT else orjson.loads(event.data)
            if isinstance(payload, dict) and payload.keys() <= {"error", "message", "status"} and "error" in payload:
                return read_error(payload)
            self._provider = PlainText() if payload is None else self._choose(payload)
        return self._provider.read(event, chunks)

    def end_of_input(self) -> Outcome:
        return truncated("its first event") if self._provider is None else self._provider.end_of_input()

    def _choose(self, payload: Any) -> Provider:
        """ValueError (or any error of shape) where no dialect is known."""
        if "choices" in payload:
            text = any("text" in choice and "delta" not in choice for choice in payload["choices"])
            provider = OpenAICompletions if text else OpenAIChat
            return provider(needs_done=not self._framed)
        if "outputs" in payload:
            first = payload["outputs"][0]
            names = text_events.MISTRAL
            return text_events.TextEvents(names) if "text" in first and "data" not in first else OpenInference()
        kind = payload.get("type")
        if isinstance(kind, str) and kind != "completion":
            return OpenAIResponses() if kind.startswith("response.") else CohereV2() if "-" in kind else Anthropic()
        for key, provider_of in _BY_KEY:
            if key in payload:
                return provider_of()
        raise ValueError("an event of no known shape")


GENERATE_STREAM = StreamSpec(
    name="huggingface/generate_stream",
    # TGI streams at /generate_stream; at its root it takes `stream` instead, which the other leaves alone.
    enable=Enable(body={"stream": True}, url=(("/generate", "/generate_stream"),)),
    framing=SSEFraming,
    provider=ByShape,
)
