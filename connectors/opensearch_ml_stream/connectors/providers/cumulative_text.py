"""A plain server as tutorials of vLLM and Ray show it: `data: {"text": "all so far"}` ... `data: [DONE]`.

The text is cumulative: every event repeats what came before. vLLM's own demonstration server sends a list of one.
"""

from typing import Any

import orjson

from opensearch_ml_stream.connectors.chunks import Chunk, Ending
from opensearch_ml_stream.connectors.decoding import event_fields
from opensearch_ml_stream.connectors.decoding.contract import Event, Outcome, truncated
from opensearch_ml_stream.connectors.decoding.framing.sse import SSEFraming
from opensearch_ml_stream.connectors.stream_spec import Enable, StreamSpec

_UNFINISHED = "\ufffd"


class Accumulated:
    """What is new in each version of a text. `add` is linear in the version's length, as its parsing is."""

    __slots__ = ("_text",)

    def __init__(self) -> None:
        self._text = ""

    def add(self, version: str) -> str:
        """ValueError if the version is not the last one with something added."""
        # Such servers decode token by token: half a character shows as U+FFFD at the end until the rest comes.
        version = version.rstrip(_UNFINISHED)
        if not version.startswith(self._text):
            raise ValueError("the text does not go on from the text before")
        new = version[len(self._text) :]
        self._text = version
        return new


class CumulativeText:
    """Reads `text`, a string or a list that holds it."""

    __slots__ = ("_so_far",)

    def __init__(self) -> None:
        self._so_far = Accumulated()

    def read(self, event: Event, chunks: list[Chunk]) -> Outcome | None:
        if event.data.strip() == b"[DONE]":
            return Ending()
        payload: Any = orjson.loads(event.data)
        if payload.get("error"):
            return event_fields.remote_error(payload["error"])
        value = payload["text"]
        if new := self._so_far.add(event_fields.text(value[0] if isinstance(value, list) else value)):
            chunks.append(Chunk(new))
        return None

    def end_of_input(self) -> Outcome:
        return truncated("[DONE]")


CUMULATIVE_TEXT = StreamSpec(
    name="text/cumulative",
    enable=Enable(body={"stream": True}, url=(("/generate", "/generate_stream"),)),
    framing=SSEFraming,
    provider=CumulativeText,
)
