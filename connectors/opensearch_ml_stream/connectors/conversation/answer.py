"""A whole answer to a conversation, which client APIs write in one response."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, ToolCall


@dataclass(frozen=True, slots=True)
class WholeAnswer:
    """What an answer says, and how the provider wrote it.

    `response` is the provider's object where it `is_as_sent`: where the client speaks the provider's dialect; else {}.
    `model_id` is that of the model that answered; `extra` is what the terminal object of a stream says beside its
    ending.
    """

    chunk: Chunk
    ending: Ending
    model_id: str
    response: Mapping[str, Any]
    is_as_sent: bool
    extra: Mapping[str, Any]


def as_one(chunks: Sequence[Chunk]) -> Chunk:
    """Merge chunks into one; the fragments of tool calls stay as they are."""
    text, reasoning = "".join(chunk.text for chunk in chunks), "".join(chunk.reasoning for chunk in chunks)
    calls = tuple(call for chunk in chunks for call in chunk.tool_calls)
    refusal = "".join(chunk.refusal for chunk in chunks)
    return Chunk(text, reasoning, calls, signature=_only_signature(chunks), refusal=refusal)


def whole_calls(fragments: Iterable[ToolCall]) -> tuple[ToolCall, ...]:
    """Join the fragments of tool calls, in the order in which the calls began; no two calls have the same id."""
    calls: dict[int, list[ToolCall]] = {}
    for fragment in fragments:
        calls.setdefault(fragment.index, []).append(fragment)
    ids: dict[str, int] = {}
    return tuple(
        replace(
            parts[0],
            id=parts[0].id if parts[0].id and ids.setdefault(parts[0].id, index) == index else None,
            arguments="".join(part.arguments for part in parts),
        )
        for index, parts in calls.items()
    )


def _only_signature(chunks: Iterable[Chunk]) -> str:
    """Return the proof of reasoning in chunks, "" of several: each is that of another text."""
    signatures = [chunk.signature for chunk in chunks if chunk.signature]
    return signatures[0] if len(signatures) == 1 else ""
