"""Streams whose events each hold a piece of text, a finish reason in the last, and nothing else of note.

The models of Bedrock's InvokeModel that have an interface of their own are such: each is only a set of names.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, Usage
from opensearch_ml_stream.connectors.decoding import event_fields
from opensearch_ml_stream.connectors.decoding.contract import Event, Outcome, truncated
from opensearch_ml_stream.connectors.decoding.finish_reasons import finish_reason


@dataclass(frozen=True, slots=True)
class TextNames:
    """Where such a provider's object has what: key names, and the object itself if that lies deeper."""

    text: str
    finish: str
    input_tokens: str = ""
    output_tokens: str = ""
    inner: Callable[[dict[str, Any]], Any] | None = None


class TextEvents:
    """The end of the body is a good end once a finish reason has come."""

    __slots__ = ("_finish", "_names", "_usage")

    def __init__(self, names: TextNames) -> None:
        self._names = names
        self._finish: str | None = None
        self._usage: Usage | None = None

    def read(self, event: Event, chunks: list[Chunk]) -> Outcome | None:
        payload: Any = orjson.loads(event.data)
        names = self._names
        part = payload if names.inner is None else names.inner(payload)
        if text := event_fields.text(part.get(names.text)):
            chunks.append(Chunk(text))
        self._finish = event_fields.name(part.get(names.finish)) or self._finish
        counts = (
            event_fields.count(payload.get(names.input_tokens)),
            event_fields.count(payload.get(names.output_tokens)),
        )
        if counts != (None, None):
            before = self._usage or Usage()
            self._usage = Usage(
                before.input_tokens if counts[0] is None else counts[0],
                before.output_tokens if counts[1] is None else counts[1],
            )
        if payload.get("error"):
            return event_fields.remote_error(payload["error"])
        return None

    def end_of_input(self) -> Outcome:
        if self._finish is None:
            return truncated("its finish reason")
        return Ending(finish_reason(self._finish), self._finish, self._usage)


TITAN = TextNames("outputText", "completionReason", "inputTextTokenCount", "totalOutputTextTokenCount")
LLAMA = TextNames("generation", "stop_reason", "prompt_token_count", "generation_token_count")
CLAUDE_2 = TextNames("completion", "stop_reason")
COMMAND = TextNames("text", "finish_reason")
MISTRAL = TextNames("text", "stop_reason", inner=lambda payload: payload["outputs"][0])
