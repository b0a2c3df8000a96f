"""OpenAI completions (the text interface before chat), as vLLM, SGLang and llama.cpp also serve it."""

from typing import Any

import orjson

from opensearch_ml_stream.connectors import fields
from opensearch_ml_stream.connectors.chunks import Chunk, Ending, Usage
from opensearch_ml_stream.connectors.decoding import Event, Outcome, truncated
from opensearch_ml_stream.connectors.finish import finish_reason
from opensearch_ml_stream.connectors.presets.openai_chat import first_choice, read_error, read_usage
from opensearch_ml_stream.connectors.sse import SSEFraming
from opensearch_ml_stream.connectors.stream_spec import Enable, StreamSpec


class OpenAICompletions:
    """Reads `text_completion` events of choice 0. `needs_done`: whether only `[DONE]` is a good end."""

    __slots__ = ("_finish", "_model", "_needs_done", "_usage")

    def __init__(self, *, needs_done: bool = True) -> None:
        self._needs_done = needs_done
        self._finish: str | None = None
        self._model: str | None = None
        self._usage: Usage | None = None

    def read(self, event: Event, chunks: list[Chunk]) -> Outcome | None:
        if event.data.strip() == b"[DONE]":
            return self._ending()
        payload: Any = orjson.loads(event.data)
        if payload.get("choices"):
            choice = first_choice(payload["choices"])
            if text := fields.text(choice.get("text")):
                chunks.append(Chunk(text))
            self._finish = fields.name(choice.get("finish_reason")) or self._finish
        if payload.get("usage"):
            self._usage = read_usage(payload["usage"])
        self._model = self._model or fields.name(payload.get("model"))
        if payload.get("error") or payload.get("object") == "error":
            return read_error(payload)
        return None

    def end_of_input(self) -> Outcome:
        return truncated("[DONE]") if self._needs_done or self._finish is None else self._ending()

    def _ending(self) -> Ending:
        return Ending(finish_reason(self._finish), self._finish, self._usage, self._model)


OPENAI_COMPLETIONS = StreamSpec(
    name="openai/v1/completions",
    enable=Enable(body={"stream": True, "stream_options": {"include_usage": True}}),
    framing=SSEFraming,
    provider=OpenAICompletions,
    repeats=True,
)
