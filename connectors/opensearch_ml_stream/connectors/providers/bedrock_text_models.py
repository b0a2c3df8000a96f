"""Text models of Bedrock's InvokeModel (Titan, Llama, Claude 2, Command, Mistral), one provider for all of them.

Their events hold a piece of text, and the last of them a finish reason. They differ only in the names of the fields:
https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters.html.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, Usage
from opensearch_ml_stream.connectors.decoding import event_fields
from opensearch_ml_stream.connectors.decoding.contract import FINISHING, Finishing, Outcome, truncated
from opensearch_ml_stream.connectors.decoding.finish_reasons import finish_reason
from opensearch_ml_stream.connectors.event import Event
from opensearch_ml_stream.connectors.provider_errors import error_without_result, read_error

GUARDRAIL_ACTION, INTERVENED = "amazon-bedrock-guardrailAction", "INTERVENED"  # Bedrock's, in an event of any model


@dataclass(frozen=True, slots=True)
class FieldNames:
    """The names of a model's fields. `text` and `finish` are fields of `text_object(event)`, if that is given."""

    text: str
    finish: str
    input_tokens: str = ""
    output_tokens: str = ""
    text_object: Callable[[dict[str, Any]], Any] | None = None


class BedrockTextModel:
    """Reads events by the names of a model's fields. The end of the body is a good end after a finish reason."""

    __slots__ = ("_finish", "_names", "_usage")

    def __init__(self, names: FieldNames) -> None:
        self._names = names
        self._finish: str | None = None
        self._usage: Usage | None = None

    def read(self, event: Event, chunks: list[Chunk]) -> Outcome | Finishing | None:
        """Append the event's text; `error` ends the stream."""
        payload: Any = event.payload
        names = self._names
        has_text = names.text in payload or "outputs" in payload
        if not has_text and (error := error_without_result(payload)) is not None:
            return error
        text_object = payload if names.text_object is None else names.text_object(payload)
        if text := event_fields.text(text_object.get(names.text)):
            chunks.append(Chunk(text))
        self._finish = event_fields.name(text_object.get(names.finish)) or self._finish
        if payload.get(GUARDRAIL_ACTION) == INTERVENED:  # its message is all there is, and has no reason
            self._finish = self._finish or INTERVENED
        self._read_usage(payload)
        if payload.get("error"):
            return read_error(payload)
        return FINISHING if self._finish is not None else None

    def end_of_input(self) -> Outcome:
        """Return a good ending if a finish reason has come."""
        if self._finish is None:
            return truncated("its finish reason")
        return Ending(finish_reason(self._finish), self._finish, self._usage)

    def _read_usage(self, payload: dict[str, Any]) -> None:
        input_tokens = event_fields.count(payload.get(self._names.input_tokens))
        output_tokens = event_fields.count(payload.get(self._names.output_tokens))
        if input_tokens is None and output_tokens is None:
            return
        self._usage = Usage(input_tokens, output_tokens).after(self._usage)


TITAN = FieldNames("outputText", "completionReason", "inputTextTokenCount", "totalOutputTextTokenCount")
LLAMA = FieldNames("generation", "stop_reason", "prompt_token_count", "generation_token_count")
CLAUDE_2 = FieldNames("completion", "stop_reason")
COMMAND = FieldNames("text", "finish_reason")
MISTRAL = FieldNames("text", "stop_reason", text_object=lambda event: event["outputs"][0])
