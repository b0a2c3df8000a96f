"""What OpenAI's events say beside text, as they were sent: for clients of the same dialect.

A client of the dialect gets each event as it came, but for those that are text alone: of these the text is enough, so
that they can take the fast path (`decoding.fast_path`). They differ in nothing else that it could miss from the first
event with choice 0, which is always as it was sent, as those before it are; what it takes to write them again (id,
model, ...) is in that one.
"""

from typing import Any

import orjson

from opensearch_ml_stream.connectors.chunks import Chunk
from opensearch_ml_stream.connectors.decoding.contract import Event, EventReader, Finishing, Outcome
from opensearch_ml_stream.connectors.errors import UpstreamError

# The members that say of which response an event is, not what is in it. Some servers write them anew in each event, and
# some a padding, for the way from there to here.
_ENVELOPE = frozenset({"id", "object", "created", "model", "system_fingerprint", "obfuscation", "p"})
_NOT_SAID = _ENVELOPE | {"choices"}
_ABSENT: tuple[Any, ...] = (None, "", [], {})


class AllAsSent:
    """Gives each event as it was sent, with what `inner` reads in it. `[DONE]` and errors are not given."""

    __slots__ = ("_inner", "_wants_usage")

    def __init__(self, inner: EventReader, wants_usage: bool = True) -> None:
        self._inner = inner
        self._wants_usage = wants_usage

    def read(self, event: Event, chunks: list[Chunk]) -> Outcome | Finishing | None:
        """Append the event's chunk."""
        own: list[Chunk] = []
        outcome, data = self._inner.read(event, own), event.data.strip()
        if isinstance(outcome, UpstreamError) or data == b"[DONE]":
            chunks += own
        else:
            chunks += self._as_sent(data, own, is_ending=outcome is not None)
        return outcome

    def end_of_input(self) -> Outcome:
        """Return the outcome that `inner` gives."""
        return self._inner.end_of_input()

    def _as_sent(self, data: bytes, own: list[Chunk], *, is_ending: bool) -> list[Chunk]:
        return [_with_event(data, own)]


class ChoicesAsSent(AllAsSent):
    """Gives the events of chat or text completions as they were sent, but for those that are text of choice 0 alone.

    Whether an event is text alone depends on the first event with that choice only, so that all events of one frame
    are, or none: the fast path relies on it.
    """

    __slots__ = ("_choice", "_first", "_text")

    def __init__(self, inner: EventReader, wants_usage: bool = True, *, text: str = "delta") -> None:
        super().__init__(inner, wants_usage)
        self._text = text  # the member of a choice that holds its text
        self._first: dict[str, Any] = {}  # the first event with choice 0, and that choice
        self._choice: dict[str, Any] = {}

    def _as_sent(self, data: bytes, own: list[Chunk], *, is_ending: bool) -> list[Chunk]:
        payload = orjson.loads(data)
        choices = payload.get("choices") or []
        if not choices and not self._wants_usage and payload.get("usage"):
            return own
        if self._first:
            is_text = (own or not is_ending) and self._is_text(payload, choices)
            return own if is_text else [_with_event(data, own)]
        if choices and not choices[0].get("index"):
            self._first, self._choice = payload, choices[0]
        return [_with_event(data, own)]

    def _is_text(self, payload: dict[str, Any], choices: list[dict[str, Any]]) -> bool:
        """Return whether an event says nothing, or nothing but a piece of text that choice 0 goes on with."""
        first = self._first
        for name in payload.keys() - _NOT_SAID:
            value = payload[name]
            if value is not None and (name not in first or value != first[name]):
                return False
        return self._is_text_choice(choices[0]) if len(choices) == 1 else not choices

    def _is_text_choice(self, choice: dict[str, Any]) -> bool:
        first = self._choice
        for name, value in choice.items():
            if name == self._text or (not value and (value is None or name == "index")):
                continue
            if name in ("index", "finish_reason") or name not in first or value != first[name]:
                return False
        text = choice.get(self._text)
        if not isinstance(text, dict):
            return text is None or isinstance(text, str)
        for name, value in text.items():
            if (name == "content" and isinstance(value, str)) or value in _ABSENT:
                continue
            if name != "role" or value != (first.get(self._text) or {}).get("role"):
                return False
        return True


def _with_event(data: bytes, own: list[Chunk]) -> Chunk:
    """Return one chunk of all that was read in an event; line ends, which JSON has between values only, are spaces."""
    event = data.replace(b"\n", b" ")
    if not own:
        return Chunk(event=event)
    if len(own) == 1:
        return Chunk(*own[0][:-1], event)
    return Chunk(
        "".join(chunk.text for chunk in own),
        "".join(chunk.reasoning for chunk in own),
        tuple(call for chunk in own for call in chunk.tool_calls),
        signature="".join(chunk.signature for chunk in own),
        event=event,
    )
