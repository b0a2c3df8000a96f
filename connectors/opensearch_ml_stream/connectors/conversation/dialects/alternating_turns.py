"""What dialects share that take turns of the user and of the model in alternation, with the system's text apart."""

from collections.abc import Container, Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from opensearch_ml_stream.connectors.conversation.conversation import Conversation, Part, Result, Turn
from opensearch_ml_stream.connectors.conversation.dialect import Refuse

Speaker = Literal["system", "user", "assistant"]

# Values of options that ask for nothing: what providers do without them.
_SAYS_NOTHING: dict[str, tuple[object, ...]] = {
    "n": (1,),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "min_p": (0,),
    "logit_bias": ({},),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "metadata": ({},),
    "modalities": (["text"],),
    "verbosity": ("medium",),
    "service_tier": ("auto", "default"),
    "stop": ([],),
    "reasoning_effort": ("none",),
    "reasoning_tokens": (0,),
    "reasoning_summary": (False, "none", "omitted"),
}


@dataclass(frozen=True, slots=True)
class Message:
    """What one speaker says until another does; `system` stands for a developer too."""

    speaker: Speaker
    parts: tuple[Part, ...]


def to_messages(turns: Iterable[Turn]) -> list[Message]:
    """Return the turns with those of one speaker that follow one another as one; a user's results come first."""
    return [
        Message(speaker, _results_first(tuple([part for turn in group for part in turn.parts])))
        for speaker, group in groupby(turns, _speaker)
    ]


def refuse_part(conversation: Conversation, refuse: Refuse, what: str, why: str) -> None:
    """Refuse what is in a message: a kind of part, or a member of one."""
    refuse(f"{conversation.member('turns')}.{what}", why)


def refuse_names(conversation: Conversation, refuse: Refuse) -> None:
    """Refuse the names of speakers, where the provider has none."""
    if any(turn.name for turn in conversation.turns):
        refuse_part(conversation, refuse, "name", "the provider takes no names of who speaks")


def refuse_rest(conversation: Conversation, refuse: Refuse, takes: Container[str]) -> None:
    """Refuse what the client asks for that the provider has no member for: options but those it takes, and unknown."""
    for name, value in conversation.options.items():
        if name not in takes and value not in _SAYS_NOTHING.get(name, ()):
            refuse(conversation.member(name), "the provider has no such option")
    for path in conversation.unknown:
        refuse(path, "the provider speaks another dialect than the client, and this member is not known in it")


def _speaker(turn: Turn) -> Speaker:
    return "system" if turn.role == "developer" else turn.role


def _results_first(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    return parts if len(parts) == 1 else tuple(sorted(parts, key=lambda part: not isinstance(part, Result)))
