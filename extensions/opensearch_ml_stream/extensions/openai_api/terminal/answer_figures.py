"""The figures of an answer: first token, tokens a second, tokens, cost."""

from collections.abc import Callable
from dataclasses import dataclass

from opensearch_ml_stream.extensions.openai_api.terminal.chat_answer import ChatAnswer, Piece


@dataclass(slots=True)
class AnswerFigures:
    """Measured from the request on; `clock` returns seconds."""

    clock: Callable[[], float]
    asked_at: float = 0
    first_at: float | None = None
    last_at: float = 0

    def __post_init__(self) -> None:
        self.asked_at = self.clock()

    def add(self, piece: Piece) -> None:
        """Note that a piece has come."""
        if piece.text or piece.reasoning:
            self.last_at = self.clock()
            self.first_at = self.last_at if self.first_at is None else self.first_at

    def line(self, answer: ChatAnswer) -> str:
        """Return what is known, for people; the counts and the cost are the provider's and the sidecar's."""
        parts: list[str] = []
        output = answer.usage.get("completion_tokens")
        if self.first_at is not None:
            parts.append(f"first token {self.first_at - self.asked_at:.2f} s")
            if output and self.last_at > self.first_at:
                parts.append(f"{output / (self.last_at - self.first_at):.1f} tokens/s")
        if output is not None:
            parts.append(f"{answer.usage.get('prompt_tokens', 0)} tokens in, {output} out")
        spent = answer.told.get("spent") or {}
        cost = spent.get("cost", answer.usage.get("cost"))
        if cost is not None:
            parts.append(f"cost {cost:g}")
        return ", ".join(parts)
