"""The output of a response as it comes: deltas, events that something is done, and the whole at the end are one source.

Servers leave out some of them, or say in one what others say in another. What the deltas did not bring is taken from
what comes later, and nothing is taken twice. Items are told apart by their ids where these are the same in all events,
else by their place and kind, at the end also by their order.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from opensearch_ml_stream.connectors.chunks import Chunk, ToolCall
from opensearch_ml_stream.connectors.decoding import event_fields
from opensearch_ml_stream.connectors.decoding.event_fields import mapping, name
from opensearch_ml_stream.connectors.providers.growing_text import GrowingText

MAX_HELD_CHARS = 1024 * 1024  # of the arguments of calls whose name has not come

Channel = Literal["text", "refusal", "reasoning", "summary", "arguments", "input"]
"""A kind of text that items have."""

_Kind = Literal["message", "reasoning", "call", "unnamed"]

_KIND_OF: Mapping[Channel, _Kind] = {
    "text": "message", "refusal": "message", "reasoning": "reasoning", "summary": "reasoning", "arguments": "call",
    "input": "call",
}  # fmt: skip
_TOOL_SEARCH, _FREE_FORM = "tool_search_call", "custom_tool_call"
# Calls that have no name: their type is it, and what they hold beside these fields are the arguments.
_UNNAMED_CALLS = (
    "apply_patch_call", "computer_call", "local_shell_call", "mcp_approval_request", "shell_call", _TOOL_SEARCH,
)  # fmt: skip
_NO_ARGUMENTS = frozenset({"id", "type", "status", "call_id", "created_by"})
_KINDS: Mapping[str, _Kind] = {
    "message": "message", "reasoning": "reasoning", "function_call": "call", _FREE_FORM: "call",
    **dict.fromkeys(_UNNAMED_CALLS, "unnamed"),
}  # fmt: skip
_CHANNELS: Mapping[str, Channel] = {
    "output_text": "text", "text": "text", "refusal": "refusal", "reasoning_text": "reasoning",
    "summary_text": "summary",
}  # fmt: skip


@dataclass(slots=True, eq=False)
class _Item:
    """An item of the output, and what has come of its texts, by their channel and number."""

    kind: _Kind
    index: int | None
    id: str | None
    texts: dict[tuple[Channel, int], GrowingText] = field(default_factory=dict)
    call: int | None = None  # the index of the tool call that it is, once that has been told
    call_id: str | None = None
    held: list[str] = field(default_factory=list)  # arguments of a call whose name has not come
    unnamed: Mapping[str, Any] | None = None  # a call without a name that is not done
    signature: str = ""
    is_free_form: bool = False  # a call with a text in place of arguments
    is_done: bool = False

    def text(self, channel: Channel, number: int) -> GrowingText:
        """Return a text, a new one for the first that is told of it."""
        if len(self.texts) >= event_fields.MAX_ELEMENTS:
            raise ValueError("too many parts")
        return self.texts.setdefault((channel, number), GrowingText())

    def taken(self, channel: Channel) -> int:
        """Return how many characters were taken of a channel."""
        return sum(text.length for (own, _), text in self.texts.items() if own == channel)


class Output:
    """The output of one response. Its methods append what is new to `chunks`."""

    __slots__ = ("_by_id", "_by_place", "_calls", "_held_chars", "_items", "_missing")

    def __init__(self) -> None:
        self._items: list[_Item] = []
        self._by_id: dict[str, _Item] = {}
        self._by_place: dict[tuple[int, _Kind], _Item] = {}
        self._calls = 0
        self._held_chars = 0
        self._missing: dict[_Kind, int] = {}  # at the end: how many characters more the whole output has

    def read_delta(self, payload: dict[str, Any], channel: Channel, chunks: list[Chunk]) -> None:
        """Read a delta."""
        if text := event_fields.text(payload.get("delta")):
            item, number = self._place(payload, channel)
            self._append(item, channel, item.text(channel, number).piece(text), chunks)

    def read_done(self, payload: dict[str, Any], channel: Channel, text: Any, chunks: list[Chunk]) -> None:
        """Read the whole of a text that is done."""
        item, number = self._place(payload, channel)
        self._take(item, channel, {number: event_fields.text(text)}, chunks)

    def read_part(self, payload: dict[str, Any], chunks: list[Chunk], *, is_done: bool) -> None:
        """Read a part of an item, which has begun or is done."""
        part = mapping(payload.get("part"))
        if (channel := _CHANNELS.get(str(part.get("type")))) is None:
            return
        text = event_fields.text(part.get("refusal" if channel == "refusal" else "text"))
        if is_done:
            self.read_done(payload, channel, text, chunks)
        elif text:
            item, number = self._place(payload, channel)
            item.text(channel, number).start(text)

    def read_item(self, payload: dict[str, Any], chunks: list[Chunk], *, is_done: bool) -> None:
        """Read an item that has begun or is done."""
        said = mapping(payload.get("item"))
        if (kind := _KINDS.get(str(said.get("type")))) is None:
            return
        item = self._find(kind, payload.get("output_index"), said.get("id"))
        if item is None or _is_other(item, said, is_done=is_done):
            item = self._new(kind, payload.get("output_index"), said.get("id"))
        self._read(item, said, chunks, is_done=is_done)

    def end(self, output: Any, chunks: list[Chunk]) -> None:
        """Read the whole output at the end of the response, and end what is open."""
        said = [one for one in output if isinstance(one, dict)] if isinstance(output, list) else []
        left = list(self._items)
        self._missing = self._count_missing(said)
        for place, one in enumerate(said[: event_fields.MAX_ELEMENTS]):
            if (kind := _KINDS.get(str(one.get("type")))) is None:
                continue
            item = _match(left, kind, place, one)
            if item is None:
                item = self._new(kind, None, one.get("id"))
            else:
                left.remove(item)
            self._read(item, one, chunks, is_done=True)
        for item in self._items:
            self._end(item, chunks)
            if item.kind == "call":
                self._announce(item, None, chunks)

    def _place(self, payload: dict[str, Any], channel: Channel) -> tuple[_Item, int]:
        """Return the item and the number of the text that an event is of."""
        kind = _KIND_OF[channel]
        index, id = payload.get("output_index"), payload.get("item_id")
        item = self._find(kind, index, id) or self._new(kind, index, id)
        number = payload.get("summary_index" if channel == "summary" else "content_index")
        return item, number if isinstance(number, int) else 0

    def _find(self, kind: _Kind, index: Any, id: Any) -> _Item | None:
        item = self._by_id.get(id) if isinstance(id, str) else None
        if item is not None and item.kind == kind and (index is None or item.index in (None, index)):
            return item
        if isinstance(index, int):
            return self._by_place.get((index, kind))
        last = self._items[-1] if self._items else None
        return last if last is not None and last.kind == kind else None

    def _new(self, kind: _Kind, index: Any, id: Any) -> _Item:
        if len(self._items) >= event_fields.MAX_TOOL_CALLS:
            raise ValueError("too many items")
        item = _Item(kind, index if isinstance(index, int) else None, name(id))
        self._items.append(item)
        if item.id is not None:
            self._by_id[item.id] = item
        if item.index is not None:
            self._by_place[item.index, kind] = item
        return item

    def _read(self, item: _Item, said: dict[str, Any], chunks: list[Chunk], *, is_done: bool) -> None:
        if item.kind == "unnamed":
            self._read_unnamed(item, said, chunks, is_done=is_done)
            return
        if item.kind == "call":
            item.is_free_form = item.is_free_form or said.get("type") == _FREE_FORM
            item.call_id = item.call_id or name(said.get("call_id"))
            item.id = item.id or name(said.get("id"))
            if (called := name(said.get("name"))) is not None:
                self._announce(item, called, chunks)
        for channel, texts in _texts_of(item.kind, said).items():
            if is_done:
                self._take(item, channel, texts, chunks)
            else:
                for number, text in texts.items():
                    item.text(channel, number).start(
                        text, is_replaced=channel == "arguments" and event_fields.is_json(text)
                    )
        if is_done:
            self._end(item, chunks)
            self._sign(item, said, chunks)
            item.is_done = True

    def _read_unnamed(self, item: _Item, said: dict[str, Any], chunks: list[Chunk], *, is_done: bool) -> None:
        """Append the whole call of an item; one that is done twice is one call."""
        if item.call is not None or not _is_of_client(said):
            return
        if not is_done:
            item.unnamed = said
            return
        own = {name: value for name, value in said.items() if name not in _NO_ARGUMENTS and value is not None}
        text = event_fields.arguments(said.get("arguments") if said["type"] == _TOOL_SEARCH else own)
        item.call_id = name(said.get("call_id")) or name(said.get("id"))
        item.held.append(text)
        self._announce(item, said["type"], chunks)

    def _take(self, item: _Item, channel: Channel, texts: Mapping[int, str], chunks: list[Chunk]) -> None:
        """Append what whole texts of a channel go on with, no more than what they have more together."""
        most = sum(map(len, texts.values())) - (item.taken(channel) if len(texts) > 1 else 0)
        most = min(most, self._missing.get(item.kind, most))
        for number, text in texts.items():
            if item.kind != "reasoning" or not _is_told_otherwise(item, channel, text):
                rest = item.text(channel, number).whole(text, most)
                most -= len(rest)
                if self._missing:
                    self._missing[item.kind] -= len(rest)
                self._append(item, channel, rest, chunks)

    def _count_missing(self, output: Iterable[Mapping[str, Any]]) -> dict[_Kind, int]:
        """Count by how many characters of each kind a whole output has more than was taken, in whatever items."""
        missing: dict[_Kind, int] = dict.fromkeys(_KIND_OF.values(), 0)
        for one in output:
            if (kind := _KINDS.get(str(one.get("type")))) in missing:
                texts = _texts_of(kind, one)
                missing[kind] += sum(len(text) for numbered in texts.values() for text in numbered.values())
        for item in self._items:
            if item.kind in missing:
                missing[item.kind] -= sum(text.length for text in item.texts.values())
        return missing

    def _end(self, item: _Item, chunks: list[Chunk]) -> None:
        """Append what only a start has told."""
        for (channel, _), text in item.texts.items():
            self._append(item, channel, text.end(), chunks)
        if item.unnamed is not None:
            said, item.unnamed = item.unnamed, None
            self._read_unnamed(item, dict(said), chunks, is_done=True)

    def _sign(self, item: _Item, said: dict[str, Any], chunks: list[Chunk]) -> None:
        signature = name(said.get("encrypted_content"))
        if signature is not None and item.kind == "reasoning" and not item.signature:
            item.signature = event_fields.text(said["encrypted_content"])
            chunks.append(Chunk(signature=item.signature))

    def _append(self, item: _Item, channel: Channel, text: str, chunks: list[Chunk]) -> None:
        if not text:
            return
        if channel == "text":
            chunks.append(Chunk(text))
        elif channel == "refusal":
            chunks.append(Chunk(text, refusal=text))
        elif item.kind == "reasoning":
            chunks.append(Chunk(reasoning=text))
        elif item.call is None:
            item.is_free_form = channel == "input"
            self._held_chars += len(text)
            if self._held_chars > MAX_HELD_CHARS:
                raise ValueError("too many arguments of a call without a name")
            item.held.append(text)
        else:
            chunks.append(Chunk(tool_calls=(ToolCall(item.call, arguments=text),)))

    def _announce(self, item: _Item, called: str | None, chunks: list[Chunk]) -> None:
        """Append the first fragment of a call, with the arguments that waited for its name."""
        if item.call is not None:
            return
        item.call = self._calls
        self._calls += 1
        id = item.call_id or (None if called is None else item.id)
        call = ToolCall(item.call, id, called, "".join(item.held), item.is_free_form)
        self._held_chars -= len(call.arguments) if item.kind == "call" else 0
        item.held.clear()
        chunks.append(Chunk(tool_calls=(call,)))


def _is_other(item: _Item, said: Mapping[str, Any], *, is_done: bool) -> bool:
    """Return whether an event is of another item than that at its place: some servers have one place for all."""
    id, call_id = name(said.get("id")), name(said.get("call_id"))
    if call_id is not None and item.call_id is not None:
        return call_id != item.call_id
    is_named_otherwise = id is not None and item.id is not None and id != item.id
    if not item.is_done:
        return is_named_otherwise and not is_done
    return is_named_otherwise or not is_done


def _match(items: Iterable[_Item], kind: _Kind, place: int, said: Mapping[str, Any]) -> _Item | None:
    """Return which of the items that are not known yet in the whole output is this one of it."""
    alike = [item for item in items if item.kind == kind]
    call_id, id = name(said.get("call_id")), name(said.get("id"))
    if call_id is not None:
        alike = [item for item in alike if item.call_id in (None, call_id)]
        if (same := next((item for item in alike if item.call_id == call_id), None)) is not None:
            return same
    same = next((item for item in alike if id is not None and item.id == id), None)
    at_place = next((item for item in alike if item.index == place), None)
    return same or at_place or next(iter(alike), None)


def _texts_of(kind: _Kind, said: Mapping[str, Any]) -> dict[Channel, dict[int, str]]:
    """Return the texts of an item, by their channels and numbers."""
    if kind == "call":
        member: Channel = "input" if said.get("type") == _FREE_FORM else "arguments"
        text = event_fields.arguments(said.get(member))
        return {member: {0: text}} if text else {}
    found: dict[Channel, dict[int, str]] = {}
    for holder in ("summary", "content"):
        parts = said.get(holder) or []
        if isinstance(parts, str):
            parts = [{"type": "text", "text": parts}]
        for number, part in enumerate(event_fields.elements(parts)):
            channel = _CHANNELS.get(str(mapping(part).get("type")))
            if channel == "text" and kind == "reasoning":
                channel = "reasoning"
            if channel is not None and _KIND_OF[channel] == kind:
                text = event_fields.text(part.get("refusal" if channel == "refusal" else "text"))
                found.setdefault(channel, {})[number] = text
    return found


def _is_told_otherwise(item: _Item, channel: Channel, text: str) -> bool:
    """Return whether reasoning has come as what it is not called here: some servers call it now so, now so."""
    return any(other != channel and known.is_of(text) for (other, _), known in item.texts.items())


def _is_of_client(item: Mapping[str, Any]) -> bool:
    """Return whether the client is to act on an item; the shell of a container and a hosted search are OpenAI's."""
    if item.get("execution") == "server":
        return False
    return bool(mapping(item.get("environment")).get("type", "local") == "local")
