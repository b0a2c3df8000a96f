"""The wire format of streams of `/v1/completions`: objects of kind `text_completion`."""

from collections.abc import Mapping
from typing import Any, ClassVar

from opensearch_ml_stream.connectors.chunks import Chunk
from opensearch_ml_stream.extensions.openai_api.protocol.sent_chunks import SentTextChunks
from opensearch_ml_stream.extensions.openai_api.protocol.stream_events import StreamEvents


class CompletionsEvents(StreamEvents):
    """The format of one stream of text. Reasoning and tool calls have no place in it."""

    _object: ClassVar[str] = "text_completion"
    _sent_chunks = SentTextChunks

    def _choice(self, text: Any) -> dict[str, Any]:
        return text_choice(text, None)

    def _text_in(self, choice: Mapping[str, Any], text: Any) -> dict[str, Any]:
        return {"text": text}

    def _own_choice(self, chunk: Chunk) -> dict[str, Any]:
        return text_choice(chunk.text, None)

    def _finish(self, finish_reason: str) -> dict[str, Any]:
        return text_choice("", finish_reason)


def text_choice(text: str, finish_reason: str | None) -> dict[str, Any]:
    """Return a choice with its text."""
    return {"text": text, "index": 0, "logprobs": None, "finish_reason": finish_reason}
