"""OpenAI completions (the text interface before chat), as vLLM, SGLang and llama.cpp also serve it."""

from typing import Any

from opensearch_ml_stream.connectors import fields
from opensearch_ml_stream.connectors.chunks import Chunk
from opensearch_ml_stream.connectors.presets.openai_chat import OpenAIChat
from opensearch_ml_stream.connectors.sse import SSEFraming
from opensearch_ml_stream.connectors.stream_spec import Enable, StreamSpec


class OpenAICompletions(OpenAIChat):
    """Reads `text_completion` events of choice 0, which are chat's but for where the text is."""

    __slots__ = ()

    def _read_choice(self, choice: dict[str, Any], chunks: list[Chunk]) -> None:
        if text := fields.text(choice.get("text")):
            chunks.append(Chunk(text))


OPENAI_COMPLETIONS = StreamSpec(
    name="openai/v1/completions",
    enable=Enable(body={"stream": True, "stream_options": {"include_usage": True}}),
    framing=SSEFraming,
    provider=OpenAICompletions,
    repeats=True,
)
