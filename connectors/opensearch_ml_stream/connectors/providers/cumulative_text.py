"""Cumulative text: servers whose every event repeats the text before it, `data: {"text": "all so far"}`.

Tutorials of vLLM and Ray show such servers; `data: [DONE]` ends the stream. vLLM's own demonstration server sends the
text in a list of one.
"""

from typing import Any

from opensearch_ml_stream.connectors.chunks import Chunk, Ending
from opensearch_ml_stream.connectors.decoding import event_fields
from opensearch_ml_stream.connectors.decoding.contract import Outcome, truncated
from opensearch_ml_stream.connectors.decoding.sse import SSEFraming
from opensearch_ml_stream.connectors.event import Event
from opensearch_ml_stream.connectors.provider import Interface, Provider
from opensearch_ml_stream.connectors.provider_errors import read_error, without_answer
from opensearch_ml_stream.connectors.stream_spec import Enable, StreamSpec

_UNFINISHED = "\ufffd"


class CumulativeTextDiff:
    """The last version of a growing text, to find what is new in the next. Linear in the length of each version."""

    __slots__ = ("_text",)

    def __init__(self) -> None:
        self._text = ""

    def new_text(self, version: str) -> str:
        """Return what `version` adds to the last version. ValueError if it does not begin with that."""
        # Such servers decode token by token: half a character is U+FFFD at the end until its rest comes.
        version = version.rstrip(_UNFINISHED)
        if not version.startswith(self._text):
            raise ValueError("the text does not go on from the text before")
        added = version[len(self._text) :]
        self._text = version
        return added


class CumulativeText:
    """Reads `text`, a string or a list with one string, of each event."""

    __slots__ = ("_has_read", "_text")

    def __init__(self) -> None:
        self._has_read = False
        self._text = CumulativeTextDiff()

    def read(self, event: Event, chunks: list[Chunk]) -> Outcome | None:
        """Append what is new in the text; `[DONE]` or `error` ends the stream."""
        if event.data.strip() == b"[DONE]":
            return Ending() if self._has_read else without_answer()
        payload: Any = event.payload
        if payload.get("error"):
            return read_error(payload)
        value = payload["text"]
        self._has_read = True
        if new := self._text.new_text(event_fields.text(value[0] if isinstance(value, list) else value)):
            chunks.append(Chunk(new))
        return None

    def end_of_input(self) -> Outcome:
        """Return a truncation: only `[DONE]` is a good end."""
        return truncated("[DONE]")


CUMULATIVE_TEXT = StreamSpec(
    name="text/cumulative",
    enable=Enable(body={"stream": True}, url=(("/generate", "/generate_stream"),), is_only_url=True),
    framing=SSEFraming,
    reader=CumulativeText,
)

PROVIDER = Provider(interfaces=(Interface((CUMULATIVE_TEXT.name,), CUMULATIVE_TEXT),))
