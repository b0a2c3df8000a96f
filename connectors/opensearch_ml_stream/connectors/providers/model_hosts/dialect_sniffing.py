"""Streams whose dialect only their events tell: what Bedrock's InvokeModel, SageMaker and `/generate_stream` carry.

The first event's keys choose the provider that reads it and all that follow.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import orjson

from opensearch_ml_stream.connectors.chunks import Chunk, Ending
from opensearch_ml_stream.connectors.decoding.contract import Event, Outcome, Provider, truncated
from opensearch_ml_stream.connectors.decoding.framing.plain_text import PLAIN_TEXT
from opensearch_ml_stream.connectors.providers import bedrock_text_models
from opensearch_ml_stream.connectors.providers.anthropic import Anthropic
from opensearch_ml_stream.connectors.providers.bedrock_converse import BedrockConverse
from opensearch_ml_stream.connectors.providers.cohere import CohereV1, CohereV2
from opensearch_ml_stream.connectors.providers.cumulative_text import CumulativeText
from opensearch_ml_stream.connectors.providers.gemini import Gemini
from opensearch_ml_stream.connectors.providers.ollama import Ollama
from opensearch_ml_stream.connectors.providers.open_inference import OpenInference
from opensearch_ml_stream.connectors.providers.openai.chat import OpenAIChat, read_error
from opensearch_ml_stream.connectors.providers.openai.completions import OpenAICompletions
from opensearch_ml_stream.connectors.providers.openai.responses import OpenAIResponses
from opensearch_ml_stream.connectors.providers.plain_text_body import PlainTextBody
from opensearch_ml_stream.connectors.providers.text_generation_inference import TextGenerationInference

_CONVERSE_EVENTS = ("messageStart", "contentBlockStart", "contentBlockDelta", "messageStop", "metadata")

# In this order: the first key that an event has decides.
_BY_KEY: tuple[tuple[str, Callable[[], Provider]], ...] = (
    ("event_type", CohereV1),
    ("outputText", partial(bedrock_text_models.TextEvents, bedrock_text_models.TITAN)),
    ("generation", partial(bedrock_text_models.TextEvents, bedrock_text_models.LLAMA)),
    ("completion", partial(bedrock_text_models.TextEvents, bedrock_text_models.CLAUDE_2)),
    ("token", TextGenerationInference),
    ("generated_text", TextGenerationInference),
    ("error_type", TextGenerationInference),
    ("text_output", OpenInference),
    ("is_finished", partial(bedrock_text_models.TextEvents, bedrock_text_models.COMMAND)),
    ("done", Ollama),
    ("candidates", Gemini),
    ("promptFeedback", Gemini),
    ("usageMetadata", Gemini),
    *((name, BedrockConverse) for name in _CONVERSE_EVENTS),
    ("text", CumulativeText),
)


class SniffedDialect:
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
            self._provider = PlainTextBody() if payload is None else self._choose(payload)
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
            names = bedrock_text_models.MISTRAL
            return bedrock_text_models.TextEvents(names) if "text" in first and "data" not in first else OpenInference()
        kind = payload.get("type")
        if isinstance(kind, str) and kind != "completion":
            return OpenAIResponses() if kind.startswith("response.") else CohereV2() if "-" in kind else Anthropic()
        for key, provider_of in _BY_KEY:
            if key in payload:
                return provider_of()
        raise ValueError("an event of no known shape")
