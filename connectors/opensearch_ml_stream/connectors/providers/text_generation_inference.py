"""Hugging Face text-generation-inference (TGI), the interface `/generate_stream`.

https://huggingface.co/docs/text-generation-inference/reference/api_reference.
Its stream spec is in `generate_stream`.
"""

from typing import Any

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, Usage
from opensearch_ml_stream.connectors.decoding import event_fields
from opensearch_ml_stream.connectors.decoding.contract import Outcome, truncated
from opensearch_ml_stream.connectors.decoding.finish_reasons import finish_reason
from opensearch_ml_stream.connectors.event import Event
from opensearch_ml_stream.connectors.provider_errors import error_without_result
from opensearch_ml_stream.connectors.providers.accumulated_text import AccumulatedText


class TextGenerationInference:
    """Reads one token an event, without special tokens such as `</s>`. The last event has a `generated_text`."""

    __slots__ = ("_text",)

    def __init__(self) -> None:
        self._text = AccumulatedText()

    def read(self, event: Event, chunks: list[Chunk]) -> Outcome | None:
        """Append the token's text; a `generated_text` that is not null, or `error`, ends the stream."""
        payload: Any = event.payload
        if "token" not in payload and (error := error_without_result(payload)) is not None:
            return error
        token = event_fields.mapping(payload.get("token"))
        text = event_fields.text(token.get("text"))
        if text and not token.get("special"):
            chunks.append(Chunk(self._text.piece(text)))
        if payload.get("generated_text") is None:
            return None
        whole = event_fields.text(payload["generated_text"])
        if rest := self._text.whole(whole, len(whole)):  # no token has told it
            chunks.append(Chunk(rest))
        details = event_fields.mapping(payload.get("details"))
        native = event_fields.name(details.get("finish_reason"))
        output = event_fields.count(details.get("generated_tokens"))
        usage = None if output is None else Usage(event_fields.count(details.get("input_length")), output)
        return Ending(finish_reason(native), native, usage)

    def end_of_input(self) -> Outcome:
        """Return a truncation: only an event with a `generated_text` is a good end."""
        return truncated("generated_text")
