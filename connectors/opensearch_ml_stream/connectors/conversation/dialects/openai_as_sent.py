"""What OpenAI's events say beside text, as they were sent: for clients of the same dialect.

A client of the dialect gets each event as it came, but for those that are text alone: of these the text is enough, so
that they can take the fast path (`decoding.fast_path`). They differ in nothing else that it could miss from the first
event with a text of choice 0, which is always as it was sent, as those before it are; what it takes to write them again
(id, model, ...) is in that one.
"""

from collections.abc import Sequence
from typing import Any

from opensearch_ml_stream.connectors.chunks import Chunk
from opensearch_ml_stream.connectors.decoding import event_fields
from opensearch_ml_stream.connectors.decoding.contract import FINISHING, Finishing, Outcome
from opensearch_ml_stream.connectors.decoding.finish_reasons import after_calls, finish_reason
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.event import Event

# The members that say of which response an event is, not what is in it. Some servers write them anew in each event, and
# some a padding, for the way from there to here.
_ENVELOPE = frozenset({"id", "object", "created", "model", "system_fingerprint", "obfuscation", "p"})
_NOT_SAID = _ENVELOPE | {"choices"}
_ABSENT: tuple[Any, ...] = (None, "", [], {})
_CALLS = ("function_call", "tool_calls")  # members that hold calls, and the finish reasons for these


def choose_all(event: Event, chunks: Sequence[Chunk], outcome: Outcome | Finishing | None) -> Event | None:
    """Choose every event but errors."""
    return None if isinstance(outcome, UpstreamError) else event


class ChooseChoices:
    """Chooses the events of chat or text completions, but those that are text of choice 0 alone.

    Whether an event is text alone depends on the first event with such a text only, so that all events of one frame
    are, or none: the fast path relies on it.
    """

    __slots__ = ("_called", "_choice", "_first", "_text", "_wants_usage")

    def __init__(self, wants_usage: bool = True, *, text: str = "delta") -> None:
        self._wants_usage = wants_usage
        self._text = text  # the member of a choice that holds its text
        self._first: dict[str, Any] = {}  # the first event with a text of choice 0, and that choice
        self._choice: dict[str, Any] = {}
        self._called: dict[int, str] = {}  # the finish reasons for the calls of choices, by their index

    def __call__(self, event: Event, chunks: Sequence[Chunk], outcome: Outcome | Finishing | None) -> Event | None:
        """Choose an event; see `ChooseEvent`."""
        if outcome is not None and outcome is not FINISHING:  # the terminator, or an error
            return None
        payload = event.payload
        choices = payload.get("choices") or []
        if len(choices) > 1 and not all(isinstance(choice, dict) for choice in choices):
            raise ValueError("a choice that is no object")
        if not choices and not self._wants_usage and payload.get("usage"):
            return None
        if self._first:
            if (chunks or outcome is None) and self._is_text(payload, choices):
                return None
        elif chunks and chunks[0].text and not choices[0].get("index"):
            self._first, self._choice = payload, choices[0]
        return self._ended_by_calls(event, payload, choices)

    def _ended_by_calls(self, event: Event, payload: dict[str, Any], choices: list[dict[str, Any]]) -> Event:
        """Return an event in which choices with calls do not end as finished ones."""
        for choice in choices:
            calls = reason_of_calls(choice.get("delta"))
            if calls is not None and len(self._called) < event_fields.MAX_ELEMENTS:
                self._called[_index(choice)] = calls
        if not self._called:
            return event
        ended = [end_with_calls(choice, self._called.get(_index(choice))) for choice in choices]
        return event if ended == choices else Event.of({**payload, "choices": ended}, event.name)

    def _is_text(self, payload: dict[str, Any], choices: list[dict[str, Any]]) -> bool:
        """Return whether an event says nothing, or nothing but a piece of text that choice 0 goes on with."""
        if len(choices) > 1 or (choices and not self._is_text_choice(choices[0])):
            return False
        first = self._first
        for name in payload.keys() - _NOT_SAID:
            value = payload[name]
            if value is not None and (name not in first or value != first[name]):
                return False
        return True

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


def reason_of_calls(message: Any) -> str | None:
    """Return the finish reason for the calls in a message or a delta, None if it has none."""
    holder = event_fields.mapping(message)
    return next((member for member in _CALLS if holder.get(member)), None)


def end_with_calls(choice: dict[str, Any], calls: str | None) -> dict[str, Any]:
    """Return a choice, with the finish reason for its calls if it has some and its provider says that it is done."""
    word = event_fields.name(choice.get("finish_reason"))
    if calls is None or word is None:
        return choice
    reason = finish_reason(word)
    return choice if after_calls(reason) == reason else {**choice, "finish_reason": calls}


def _index(choice: dict[str, Any]) -> int:
    return event_fields.count(choice.get("index")) or 0
