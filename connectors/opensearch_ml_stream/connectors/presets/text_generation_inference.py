"""Hugging Face text-generation-inference: https://huggingface.co/docs/text-generation-inference/reference/api_reference."""

from typing import Any

import orjson

from opensearch_ml_stream.connectors import fields
from opensearch_ml_stream.connectors.chunks import Chunk, Ending, Usage
from opensearch_ml_stream.connectors.decoding import Event, Outcome, truncated
from opensearch_ml_stream.connectors.finish import finish_reason

_ERROR_STATUS = {"validation": 422, "overloaded": 429, "generation": 424, "incomplete_generation": 500}


class TextGenerationInference:
    """The event whose `generated_text` is not null is the last; special tokens (`</s>`) are no text."""

    __slots__ = ()

    def read(self, event: Event, chunks: list[Chunk]) -> Outcome | None:
        payload: Any = orjson.loads(event.data)
        if payload.get("error"):
            return fields.remote_error(payload["error"], _ERROR_STATUS.get(str(payload.get("error_type"))))
        token = fields.mapping(payload.get("token"))
        text = fields.text(token.get("text"))
        if text and not token.get("special"):
            chunks.append(Chunk(text))
        if payload.get("generated_text") is None:
            return None
        details = fields.mapping(payload.get("details"))
        native = fields.name(details.get("finish_reason"))
        output = fields.count(details.get("generated_tokens"))
        usage = None if output is None else Usage(fields.count(details.get("input_length")), output)
        return Ending(finish_reason(native), native, usage)

    def end_of_input(self) -> Outcome:
        return truncated("generated_text")
