r"""Put together the characters whose surrogate pair a provider splits over two events.

A server that counts in UTF-16 may end one token between the two halves of a surrogate pair and write `"...\ud83d"`
into one event, `"\ude00..."` into the next. Neither is a character by itself (RFC 8259, section 8.2), so that each is
read as U+FFFD; both are one.
"""

import re
from dataclasses import replace

from opensearch_ml_stream.connectors.chunks import Chunk, ToolCall
from opensearch_ml_stream.connectors.syntax.provider_json import HIGH, LOW, mask_escapes

_NO_CHARACTER = "\ufffd"
_FIRST_HALF = re.compile(rb'\\u([dD]%b)"' % HIGH)
_SECOND_HALF = re.compile(rb'"\\u([dD]%b)' % LOW)
_NOTHING = Chunk()


class SplitPairs:
    """The split pairs of one stream: the first half is held until the next text comes, and joined with the second.

    A half whose other half does not come is U+FFFD, in its place in the text.
    """

    __slots__ = ("_half", "_held")

    def __init__(self) -> None:
        self._half = 0  # the code unit of the first half that is held, 0 for none
        self._held = _NOTHING  # what it is without the other one

    @property
    def is_pending(self) -> bool:
        """Return whether the next text may begin with the second half of a pair."""
        return self._half != 0

    def join(self, data: bytes, chunks: list[Chunk], start: int) -> None:
        """Join the halves in the chunks of one event, those from `start` on; `data` is what was no JSON, b"" if it was.

        Chunks with an event as it was sent, or with a refusal, which is told apart in its text, stay as they are.
        """
        if len(chunks) == start or not (data or self._half):
            return
        data = mask_escapes(data)
        if self._half:
            chunk, second = chunks[start], _SECOND_HALF.search(data)
            pair = 0 if second is None else 0x10000 + (self._half - 0xD800) * 0x400 + int(second[1], 16) - 0xDC00
            joined = _with_beginning(chunk, self._held, chr(pair)) if pair and _is_open(chunk) else None
            chunks[start : start + 1] = [*self.close(), chunk] if joined is None else [joined]
            self._half = 0
        halves, last = _FIRST_HALF.findall(data), chunks[-1]
        split = _without_end(last) if halves and _is_open(last) else None
        if split is not None:
            self._half = int(halves[-1], 16)
            last, self._held = split
            chunks[-1:] = [] if last == _NOTHING else [last]

    def close(self) -> list[Chunk]:
        """Return what is still held: no text follows."""
        if not self._half:
            return []
        self._half = 0
        return [self._held]


def _is_open(chunk: Chunk) -> bool:
    return chunk.event is None and not chunk.refusal


def _without_end(chunk: Chunk) -> tuple[Chunk, Chunk] | None:
    """Return a chunk without the U+FFFD at its end, and that as a chunk; None if there is none."""
    if chunk.text.endswith(_NO_CHARACTER):
        return chunk._replace(text=chunk.text[:-1]), Chunk(_NO_CHARACTER)
    if chunk.reasoning.endswith(_NO_CHARACTER):
        return chunk._replace(reasoning=chunk.reasoning[:-1]), Chunk(reasoning=_NO_CHARACTER)
    if len(chunk.tool_calls) != 1 or not chunk.tool_calls[0].arguments.endswith(_NO_CHARACTER):
        return None
    call = replace(chunk.tool_calls[0], arguments=chunk.tool_calls[0].arguments[:-1])
    calls = (call,) if call.id or call.name or call.arguments else ()
    held = Chunk(tool_calls=(ToolCall(call.index, arguments=_NO_CHARACTER),))
    return chunk._replace(tool_calls=calls), held


def _with_beginning(chunk: Chunk, held: Chunk, character: str) -> Chunk | None:
    """Return a chunk with a character for the U+FFFD with which it begins where `held` is; None if it does not."""
    if held.text and chunk.text.startswith(_NO_CHARACTER):
        return chunk._replace(text=character + chunk.text[1:])
    if held.reasoning and chunk.reasoning.startswith(_NO_CHARACTER):
        return chunk._replace(reasoning=character + chunk.reasoning[1:])
    if not (held.tool_calls and chunk.tool_calls):
        return None
    call, *others = chunk.tool_calls
    if call.index != held.tool_calls[0].index or not call.arguments.startswith(_NO_CHARACTER):
        return None
    return chunk._replace(tool_calls=(replace(call, arguments=character + call.arguments[1:]), *others))
