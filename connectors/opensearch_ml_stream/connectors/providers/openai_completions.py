"""OpenAI completions, the text interface before chat, as vLLM, SGLang and llama.cpp offer it too."""

from typing import Any

from opensearch_ml_stream.connectors.chunks import Chunk
from opensearch_ml_stream.connectors.conversation.dialects import text_completions
from opensearch_ml_stream.connectors.decoding import event_fields
from opensearch_ml_stream.connectors.decoding.sse import SSEFraming
from opensearch_ml_stream.connectors.provider import Interface, Provider
from opensearch_ml_stream.connectors.providers.openai_chat import OpenAIChat
from opensearch_ml_stream.connectors.stream_spec import Enable, StreamSpec


class OpenAICompletions(OpenAIChat):
    """Reads choice 0 of `text_completion` events, which differ from those of chat only in where the text is."""

    __slots__ = ()

    def _read_choice(self, choice: dict[str, Any], chunks: list[Chunk]) -> None:
        if text := event_fields.text(choice.get("text")):
            chunks.append(Chunk(text))


OPENAI_COMPLETIONS = StreamSpec(
    name="openai/v1/completions",
    enable=Enable(body={"stream": True, "stream_options": {"include_usage": True}}),
    framing=SSEFraming,
    reader=OpenAICompletions,
    has_fast_path=True,
)

PROVIDER = Provider(
    interfaces=(
        Interface(
            (OPENAI_COMPLETIONS.name,), OPENAI_COMPLETIONS, (r"/completions\?",), dialect=text_completions.DIALECT
        ),
    )
)
