"""Choose the OpenAI events that clients of the same dialect get as they were sent.

They get each event, except those that hold text alone: the text is enough, so these can take the fast path
(`FastPathDecoder`). The other members of such an event are equal to those of the event that serves as its model: the
last event with text that was passed on before the first that was not.
"""

from collections.abc import Sequence
from typing import Any

from opensearch_ml_stream.connectors.chunks import Chunk, ToolCall
from opensearch_ml_stream.connectors.conversation.answer import as_one
from opensearch_ml_stream.connectors.decoding import event_fields
from opensearch_ml_stream.connectors.decoding.contract import FINISHING, Finishing, Outcome
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.event import Event

PADDINGS = frozenset({"obfuscation", "p"})
"""Members that hide from readers of the way between provider and server how long a text is."""

# The members that say of which response an event is, not what is in it. Some servers write them anew in each event.
_ENVELOPE = frozenset({"id", "object", "created", "model", "system_fingerprint"})
_NOT_SAID = _ENVELOPE | PADDINGS | {"choices"}
_ABSENT: tuple[Any, ...] = (None, "", [], {})
_OF_TEXT = ("role", "content")
_KNOWN_ROLES = (None, "", "assistant")


def choose_all(event: Event, chunks: Sequence[Chunk], outcome: Outcome | Finishing | None) -> Event | None:
    """Choose every event but errors."""
    return None if isinstance(outcome, UpstreamError) else event


class ChooseChoices:
    """Chooses the events of chat or text completions, but those that are text of choice 0 alone.

    Which event those are modelled on changes no more once there was one of them, so that all events of one frame are
    text alone, or none: the fast path relies on it.
    """

    __slots__ = ("_has_left_out", "_has_usage", "_member", "_model", "_wants_usage")

    def __init__(self, wants_usage: bool = True, *, text: str = "delta") -> None:
        self._wants_usage = wants_usage
        self._member = text  # of a choice, which holds its text
        self._model: dict[str, Any] | None = None
        self._has_left_out = self._has_usage = False

    def __call__(self, event: Event, chunks: Sequence[Chunk], outcome: Outcome | Finishing | None) -> Event | None:
        """Choose an event; see `ChooseEvent`."""
        if outcome is not None and outcome is not FINISHING:  # the terminator, or an error
            return None
        payload = event.payload
        choices = payload.get("choices")
        if not choices:
            if usage := payload.get("usage"):
                if not self._wants_usage:
                    return None
                has_counts = type(usage) is dict and (usage.get("prompt_tokens") or usage.get("completion_tokens"))
                if self._has_usage and not has_counts:  # which takes back no count
                    return None
                self._has_usage = bool(has_counts)
        elif len(choices) > 1 and not all(isinstance(choice, dict) for choice in choices):
            raise ValueError("a choice that is no object")
        if self._model is not None and (chunks or outcome is None) and self._is_text(payload, self._model):
            self._has_left_out = self._has_left_out or bool(chunks)
            return None
        if chunks and chunks[0].text and not self._has_left_out:
            self._model = payload
        return _with_delta(event, choices[0], chunks) if chunks and "message" in choices[0] else event

    def _is_text(self, payload: dict[str, Any], model: dict[str, Any]) -> bool:
        """Return whether an event says what the model says with another text; or no more than that, and no text."""
        text, model_text = self._text_alone(payload), self._text_alone(model)
        if text is None or not model_text:
            return False
        said, model_said = self._said(payload), self._said(model)
        if text:
            return said == model_said
        return all(name in model_said and value == model_said[name] for name, value in said.items())

    def _text_alone(self, payload: dict[str, Any]) -> str | None:
        """Return the text that is all that is said in the choices of an event, None where that is not all."""
        choices: Sequence[dict[str, Any]] = payload.get("choices") or ({},)
        choice = choices[0]
        if len(choices) > 1 or choice.get("index") or choice.get("finish_reason"):
            return None
        text = choice.get(self._member)
        if isinstance(text, dict):
            if any(name not in _OF_TEXT and value not in _ABSENT for name, value in text.items()):
                return None
            text = text.get("content") if text.get("role") in _KNOWN_ROLES else 0
        return text or "" if text is None or isinstance(text, str) else None

    def _said(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Return what an event says beside its text."""
        choices: Sequence[dict[str, Any]] = payload.get("choices") or ({},)
        said = {name: value for name, value in payload.items() if value is not None and name not in _NOT_SAID}
        for name, value in choices[0].items():
            if value is not None and name not in ("index", self._member):
                said[f"choice.{name}"] = value
        return said


def _with_delta(event: Event, choice: dict[str, Any], chunks: Sequence[Chunk]) -> Event:
    """Return an event that tells in its delta what was read of it: some servers have a message in place of deltas."""
    delta, said = event_fields.mapping(choice.get("delta")), as_one(chunks)
    has_calls = bool(delta.get("tool_calls") or delta.get("function_call"))
    if delta and said.text == delta.get("content", "") and has_calls is bool(said.tool_calls):
        return event
    own: dict[str, Any] = {"content": said.text.removesuffix(said.refusal) or None}
    if said.refusal:
        own["refusal"] = said.refusal
    if said.reasoning:
        own["reasoning_content"] = said.reasoning
    if said.tool_calls:
        own["tool_calls"] = [_delta_of(call) for call in said.tool_calls]
    told = {name: value for name, value in choice.items() if name != "message"} | {"delta": {**delta, **own}}
    return Event.of({**event.payload, "choices": [told, *event.payload["choices"][1:]]}, event.name)


def _delta_of(call: ToolCall) -> dict[str, Any]:
    names = {} if call.name is None else {"id": call.id or "", "type": "function"}
    return {"index": call.index, **names, "function": {"name": call.name or "", "arguments": call.arguments}}
