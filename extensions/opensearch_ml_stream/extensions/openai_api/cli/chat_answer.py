"""An answer as it arrives: the events of OpenAI's stream, and the message that they add up to."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from opensearch_ml_stream.extensions.openai_api.protocol.envelope import OWN_MEMBER, REASONING, SIGNATURE
from opensearch_ml_stream.plugin.cli.command_errors import CommandFailed, RequestFailed

_DATA, _OWN = b"data: ", f": {OWN_MEMBER} ".encode()


@dataclass(frozen=True, slots=True)
class Piece:
    """The text that one event adds to an answer."""

    text: str = ""
    reasoning: str = ""


@dataclass(slots=True)
class ChatAnswer:
    """The answer so far. `usage` has the provider's counts, `own` the sidecar's own member (OWN_MEMBER)."""

    texts: list[str] = field(default_factory=list)
    reasonings: list[str] = field(default_factory=list)
    signatures: list[str] = field(default_factory=list)
    calls: dict[int, dict[str, list[str]]] = field(default_factory=dict)
    finish_reason: str | None = None
    usage: Mapping[str, Any] = field(default_factory=dict)
    own: Mapping[str, Any] = field(default_factory=dict)

    def add(self, event: Mapping[str, Any]) -> Piece:
        """Add an event, and return its text."""
        self.usage = event.get("usage") or self.usage
        self.own = event.get(OWN_MEMBER) or self.own
        choice: Mapping[str, Any] = next(iter(event.get("choices") or ()), {})
        delta: Mapping[str, Any] = choice.get("delta") or {}
        self.finish_reason = choice.get("finish_reason") or self.finish_reason
        piece = Piece(delta.get("content") or "", delta.get(REASONING) or delta.get("reasoning") or "")
        self.texts.append(piece.text)
        self.reasonings.append(piece.reasoning)
        self.signatures.append(delta.get(SIGNATURE) or "")
        for fragment in delta.get("tool_calls") or ():
            self._add_call(fragment)
        return piece

    def _add_call(self, fragment: Mapping[str, Any]) -> None:
        call = self.calls.setdefault(fragment.get("index", 0), {"id": [], "name": [], "arguments": []})
        function: Mapping[str, Any] = fragment.get("function") or {}
        for name, pieces in call.items():
            pieces.append((fragment if name == "id" else function).get(name) or "")

    @property
    def tool_calls(self) -> list[dict[str, Any]]:
        """The tool calls of the message; none before the answer has ended, since arguments may be incomplete."""
        if self.finish_reason is None:
            return []
        joined = [{name: "".join(pieces) for name, pieces in call.items()} for call in self.calls.values()]
        return [
            {"id": call["id"], "type": "function", "function": {name: call[name] for name in ("name", "arguments")}}
            for call in joined
        ]

    def message(self) -> Mapping[str, Any]:
        """Return the answer as a message."""
        members = {
            "content": "".join(self.texts),
            REASONING: "".join(self.reasonings),
            SIGNATURE: "".join(self.signatures),
            "tool_calls": self.tool_calls,
        }
        given = {name: value for name, value in members.items() if value}
        return {"role": "assistant", "content": None, **given}

    def notes(self) -> Iterator[str]:
        """Yield the lines below the text: tool calls, an early end, what the sidecar reports."""
        for call in self.tool_calls:
            yield f"tool call: {call['function']['name']}({call['function']['arguments']})"
        if self.finish_reason not in (None, "stop", "tool_calls"):
            yield f"the model stopped early: {self.finish_reason}"
        if model := self.own.get("model_id"):
            yield f"answered by the model {model}"
        yield from (f"warning: {warning}" for warning in self.own.get("warnings", ()))


def read_events(body: Iterable[bytes]) -> Iterator[Mapping[str, Any]]:
    """Yield the events of a stream up to `[DONE]`; a comment of the sidecar becomes an event of its own.

    RequestFailed for an error event, or if the end does not come.
    """
    for line in _lines(body):
        if line == b"data: [DONE]":
            return
        if line.startswith(_DATA):
            yield _event(line.removeprefix(_DATA))
        elif line.startswith(_OWN):
            yield {OWN_MEMBER: orjson.loads(line.removeprefix(_OWN))}
    raise RequestFailed(424, "The answer broke off before its end")


def _lines(body: Iterable[bytes]) -> Iterator[bytes]:
    parts: list[bytes] = []
    for data in body:
        parts.append(data)
        if b"\n" in data:
            *lines, rest = b"".join(parts).split(b"\n")
            parts = [rest]
            yield from lines


def _event(data: bytes) -> Mapping[str, Any]:
    try:
        event = orjson.loads(data)
    except orjson.JSONDecodeError:
        event = None
    if not isinstance(event, dict):
        raise CommandFailed("The answer is not a stream of events; does --url name the sidecar?")
    if error := event.get("error"):
        raise RequestFailed(error.get("provider_status") or 424, str(error.get("message")))
    return event


@dataclass(slots=True)
class AnswerFigures:
    """First token, tokens a second, tokens and cost, measured from the request on; `clock` returns seconds."""

    clock: Callable[[], float]
    asked_at: float = 0
    first_at: float | None = None
    last_at: float = 0

    def __post_init__(self) -> None:
        self.asked_at = self.clock()

    def add(self, piece: Piece) -> None:
        """Record the time of a piece."""
        if piece.text or piece.reasoning:
            self.last_at = self.clock()
            self.first_at = self.last_at if self.first_at is None else self.first_at

    def line(self, answer: ChatAnswer) -> str:
        """Return the known figures in a line; the provider has the counts, the sidecar the cost."""
        parts: list[str] = []
        output = answer.usage.get("completion_tokens")
        if self.first_at is not None:
            parts.append(f"first token {self.first_at - self.asked_at:.2f} s")
            if output and self.last_at > self.first_at:
                parts.append(f"{output / (self.last_at - self.first_at):.1f} tokens/s")
        if output is not None:
            parts.append(f"{answer.usage.get('prompt_tokens', 0)} tokens in, {output} out")
        spent = answer.own.get("spent") or {}
        cost = spent.get("cost", answer.usage.get("cost"))
        if cost is not None:
            parts.append(f"cost {cost:g}")
        return ", ".join(parts)
