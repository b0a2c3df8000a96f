r"""Put together the characters whose surrogate pair a provider splits over two events.

A server that counts in UTF-16 may end one token between the two halves of a surrogate pair and write `"...\ud83d"`
into one event, `"\ude00..."` into the next. Neither is a character by itself (RFC 8259, section 8.2), so that each is
read as U+FFFD; both are one.
"""

import re
from dataclasses import replace

from opensearch_ml_stream.connectors.chunks import Chunk, ToolCall
from opensearch_ml_stream.connectors.event import Event
from opensearch_ml_stream.connectors.syntax.provider_json import HIGH, LOW, mask_escapes, unmask_escapes

_NO_CHARACTER = "\ufffd"
_ESCAPE = rb"\ufffd"  # what `provider_json` makes of half a pair
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

        A refusal, which is told apart in its text, stays as it is.
        """
        if len(chunks) == start or not (data or self._half):
            return
        data = mask_escapes(data)
        if self._half:
            chunk, second = chunks[start], _SECOND_HALF.search(data)
            pair = 0 if second is None else 0x10000 + (self._half - 0xD800) * 0x400 + int(second[1], 16) - 0xDC00
            joined = _with_beginning(chunk, self._held, chr(pair)) if pair and not chunk.refusal else None
            chunks[start : start + 1] = [*self.close(), chunk] if joined is None else [joined]
            self._half = 0
        halves, last = _FIRST_HALF.findall(data), chunks[-1]
        split = _without_end(last) if halves and not last.refusal else None
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


def _without_end(chunk: Chunk) -> tuple[Chunk, Chunk] | None:
    """Return a chunk without the U+FFFD at its end, and that as a chunk; None if there is none."""
    text, reasoning, calls = chunk.text, chunk.reasoning, chunk.tool_calls
    if text.endswith(_NO_CHARACTER):
        text, held = text[:-1], Chunk(_NO_CHARACTER)
    elif reasoning.endswith(_NO_CHARACTER):
        reasoning, held = reasoning[:-1], Chunk(reasoning=_NO_CHARACTER)
    elif len(calls) == 1 and calls[0].arguments.endswith(_NO_CHARACTER):
        call = replace(calls[0], arguments=calls[0].arguments[:-1])
        calls = (call,) if call.id or call.name or call.arguments else ()
        held = Chunk(tool_calls=(ToolCall(call.index, arguments=_NO_CHARACTER),))
    else:
        return None
    event = _edited(chunk.event, _ESCAPE + b'"', b'"')
    return chunk._replace(text=text, reasoning=reasoning, tool_calls=calls, event=event), held


def _with_beginning(chunk: Chunk, held: Chunk, character: str) -> Chunk | None:
    """Return a chunk with a character for the U+FFFD with which it begins where `held` is; None if it does not."""
    text, reasoning, calls = chunk.text, chunk.reasoning, chunk.tool_calls
    if held.text and text.startswith(_NO_CHARACTER):
        text = character + text[1:]
    elif held.reasoning and reasoning.startswith(_NO_CHARACTER):
        reasoning = character + reasoning[1:]
    elif held.tool_calls and calls and _goes_on(calls[0], held.tool_calls[0]):
        calls = (replace(calls[0], arguments=character + calls[0].arguments[1:]), *calls[1:])
    else:
        return None
    event = _edited(chunk.event, b'"' + _ESCAPE, b'"' + character.encode())
    return chunk._replace(text=text, reasoning=reasoning, tool_calls=calls, event=event)


def _goes_on(call: ToolCall, held: ToolCall) -> bool:
    return call.index == held.index and call.arguments.startswith(_NO_CHARACTER)


def _edited(event: Event | None, old: bytes, new: bytes) -> Event | None:
    """Return an event as it was sent with another text in it; None if its text is not the only one with the half."""
    data = b"" if event is None else mask_escapes(event.data)
    return None if event is None or data.count(old) != 1 else Event(event.name, unmask_escapes(data.replace(old, new)))
