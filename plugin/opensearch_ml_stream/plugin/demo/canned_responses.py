"""The demo provider's texts: the same response to the same question each time, in tokens and at a model's pace."""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass

MIN_PACE_SECONDS = 0.02
MAX_PACE_SECONDS = 0.04

_RULES = (
    (
        r"meaning of life|purpose of life|\b42\b",
        "The meaning of life is a question people have answered in many ways: to love and be loved, to learn, "
        "to leave things a little better than they were. Douglas Adams' computer took seven and a half million "
        "years and said 42; a shorter answer is that you may choose.",
    ),
    (
        r"\bopensearch\b|\bml commons\b",
        "OpenSearch is a search and analytics engine. With ML Commons it calls models that run elsewhere through "
        "connectors, and this sidecar lets their answers stream, token by token, as you see here.",
    ),
    (
        r"\bstream",
        "Streaming sends each token as soon as the model has made it. The first words are there within a fraction "
        "of a second, although the whole answer takes as long as before.",
    ),
    (
        r"\bwho are you\b|\byour name\b|\bwhat are you\b",
        "I am the demo provider of opensearch-ml-stream: a few rules and no model at all. Put a real one in my "
        "place with `opensearch-ml-stream models create`.",
    ),
    (
        r"\bjoke\b|\bfunny\b",
        "A query walks into a bar, orders one beer, and gets ten, sorted by relevance.",
    ),
    (
        r"^\W*(hi|hello|hey|good (morning|evening|day))\b",
        "Hello! I am the demo provider. Ask me about the meaning of life, or about OpenSearch.",
    ),
)
_FALLBACK = (
    'You asked: "{question}" I am only a demo and know few answers, but a real model would stream its own in just '
    "this way. Try me with the meaning of life."
)
_QUESTION_LENGTH = 200
_TOKEN = re.compile(r"\s*(?:\w{1,6}|[^\w\s]+)")


@dataclass(frozen=True, slots=True)
class CannedResponse:
    """A response in tokens; `cut` is true if the limit of tokens ended it."""

    tokens: tuple[str, ...]
    prompt_tokens: int
    cut: bool

    @property
    def text(self) -> str:
        """The tokens joined."""
        return "".join(self.tokens)


def canned_response(question: str, limit: int | None = None) -> CannedResponse:
    """Return the response to a question, of at most `limit` tokens."""
    tokens = _TOKEN.findall(_text_for(question))
    kept = tokens if limit is None else tokens[:limit]
    return CannedResponse(tuple(kept), max(1, len(_TOKEN.findall(question))), len(kept) < len(tokens))


def paces(seed: str) -> Iterator[float]:
    """Yield the pause before each token in seconds, without end; the same pauses for the same seed."""
    source = random.Random(seed)
    while True:
        yield source.uniform(MIN_PACE_SECONDS, MAX_PACE_SECONDS)


def _text_for(question: str) -> str:
    for pattern, text in _RULES:
        if re.search(pattern, question, re.IGNORECASE):
            return text
    shown = " ".join(question.split())[:_QUESTION_LENGTH]
    return _FALLBACK.format(question=shown) if shown else "You asked nothing. Put your question into `inputs`."
