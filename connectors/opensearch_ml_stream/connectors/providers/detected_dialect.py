"""Dialect detection: the keys of a stream's first event choose the reader of it and all that follow.

For Bedrock's InvokeModel, SageMaker, Workers AI and `/generate_stream`, whose events are those of the model they serve.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from opensearch_ml_stream.connectors.chunks import Chunk
from opensearch_ml_stream.connectors.decoding.contract import EventReader, Finishing, Outcome, truncated
from opensearch_ml_stream.connectors.decoding.plain_text import PLAIN_TEXT, PlainTextBody
from opensearch_ml_stream.connectors.event import Event
from opensearch_ml_stream.connectors.provider_errors import error_in, error_without_result, without_answer
from opensearch_ml_stream.connectors.providers.anthropic import Anthropic
from opensearch_ml_stream.connectors.providers.bedrock_converse import BedrockConverse
from opensearch_ml_stream.connectors.providers.bedrock_text_models import (
    CLAUDE_2,
    COMMAND,
    LLAMA,
    MISTRAL,
    TITAN,
    BedrockTextModel,
)
from opensearch_ml_stream.connectors.providers.cohere import CohereV1, CohereV2
from opensearch_ml_stream.connectors.providers.cumulative_text import CumulativeText
from opensearch_ml_stream.connectors.providers.dashscope import DashScope
from opensearch_ml_stream.connectors.providers.gemini import Gemini
from opensearch_ml_stream.connectors.providers.gemini_interactions import GeminiInteractions
from opensearch_ml_stream.connectors.providers.ollama import Ollama
from opensearch_ml_stream.connectors.providers.open_inference import OpenInference
from opensearch_ml_stream.connectors.providers.openai_chat import OpenAIChat
from opensearch_ml_stream.connectors.providers.openai_completions import OpenAICompletions
from opensearch_ml_stream.connectors.providers.openai_responses import OpenAIResponses
from opensearch_ml_stream.connectors.providers.text_generation_inference import TextGenerationInference
from opensearch_ml_stream.connectors.providers.watsonx import WatsonxGeneration
from opensearch_ml_stream.connectors.providers.workers_ai import WorkersAI

_CONVERSE_EVENTS = ("messageStart", "contentBlockStart", "contentBlockDelta", "messageStop", "metadata")

# The first of these keys that the event has decides.
_READER_BY_KEY: tuple[tuple[str, Callable[[], EventReader]], ...] = (
    ("event_type", CohereV1),
    ("outputText", partial(BedrockTextModel, TITAN)),
    ("generation", partial(BedrockTextModel, LLAMA)),
    ("completion", partial(BedrockTextModel, CLAUDE_2)),
    ("token", TextGenerationInference),
    ("generated_text", TextGenerationInference),
    ("error_type", TextGenerationInference),
    ("text_output", OpenInference),
    ("is_finished", partial(BedrockTextModel, COMMAND)),
    ("done", Ollama),
    ("response", WorkersAI),
    ("output", DashScope),
    ("candidates", Gemini),
    ("promptFeedback", Gemini),
    ("usageMetadata", Gemini),
    *((name, BedrockConverse) for name in _CONVERSE_EVENTS),
    ("text", CumulativeText),
)


class DetectedDialect:
    """Reads events by the dialect of the first one."""

    __slots__ = ("_reader",)

    def __init__(self) -> None:
        self._reader: EventReader | None = None

    def read(self, event: Event, chunks: list[Chunk]) -> Outcome | Finishing | None:
        """Append the event's chunks by its dialect; a first event that is `[DONE]` or an error ends the stream."""
        if self._reader is None:
            if event.data.strip() == b"[DONE]":
                return without_answer()
            payload = None if event.name == PLAIN_TEXT else event.payload
            if (error := error_in(payload)) is not None:
                return error
            self._reader = PlainTextBody() if payload is None else self._choose(payload)
            if self._reader is None:
                if (error := error_without_result(payload)) is not None:
                    return error
                raise ValueError("an event of no known shape")
        return self._reader.read(event, chunks)

    def end_of_input(self) -> Outcome:
        """Return the outcome that the dialect gives, a truncation if no event came."""
        return truncated("its first event") if self._reader is None else self._reader.end_of_input()

    def _choose(self, payload: Any) -> EventReader | None:
        """Return a reader for the dialect of the first event, None if it is not known.

        Raises as `EventReader.read`.
        """
        if "choices" in payload:
            has_text = any("text" in choice and "delta" not in choice for choice in payload["choices"])
            return OpenAICompletions() if has_text else OpenAIChat()
        if "outputs" in payload:
            first = payload["outputs"][0]
            return BedrockTextModel(MISTRAL) if "text" in first and "data" not in first else OpenInference()
        if "results" in payload and "generated_text" in payload["results"][0]:
            return WatsonxGeneration()
        if "." in str(payload.get("event_type")):
            return GeminiInteractions()
        kind = payload.get("type")
        if isinstance(kind, str) and kind != "completion":
            return OpenAIResponses() if kind.startswith("response.") else CohereV2() if "-" in kind else Anthropic()
        for key, new_reader in _READER_BY_KEY:
            if key in payload:
                return new_reader()
        return None
