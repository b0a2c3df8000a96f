"""The events of a response as its provider sent them, whose dialect the client speaks: as they came, or mended.

What is well formed goes on as it came: it is of an item, and of a part of it, that has begun and is not done; it says
the same id, place and name of it as the events before it, and of its text what they told. Many servers that offer the
API send other events, which its clients cannot read. What is wrong in these is put right by what was told so far, and
what is missing is written: the beginning of an item or part, a text that no delta had, the end of an item. Events of
items of other types, such as those of tools that the provider runs, go on with their place alone put right.

The last event waits until the stream has ended as it says.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from opensearch_ml_stream.connectors.chunks import (
    Chunk,
    Chunks,
    Ending,
    TextRun,
    begins_as_sent,
    to_chunk_list,
)
from opensearch_ml_stream.connectors.conversation.answer import WholeAnswer
from opensearch_ml_stream.connectors.decoding import event_fields
from opensearch_ml_stream.connectors.decoding.contract import MAX_EVENT_BYTES
from opensearch_ml_stream.connectors.decoding.event_fields import arguments, is_json, mapping, name, text
from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.connectors.event import Event
from opensearch_ml_stream.connectors.providers.accumulated_text import AccumulatedText
from opensearch_ml_stream.connectors.providers.openai_output_items import OutputItem, OutputItems, match
from opensearch_ml_stream.connectors.syntax.jsontext import to_json
from opensearch_ml_stream.connectors.wire_format import WireFormat
from opensearch_ml_stream.extensions.openai_api.protocol import responses_items as items
from opensearch_ml_stream.extensions.openai_api.protocol.responses_events import (
    COMMENT,
    CONTENT_TYPE,
    ResponsesEvents,
    error_events,
    event,
    too_long,
)
from opensearch_ml_stream.extensions.openai_api.protocol.responses_items import ResponseObject
from opensearch_ml_stream.extensions.openai_api.protocol.schemas import ResponseUsage, is_of


class _Channel(NamedTuple):
    """A kind of text: the items that have it, its events, the member in which it is told whole, and its parts."""

    item: str
    event: str
    member: str
    part: str = ""
    holder: str = ""  # of an item's parts

    @property
    def number(self) -> str:
        """The member of its events that says of which part they are."""
        return "summary_index" if self.holder == "summary" else "content_index"


_TEXT = _Channel("message", "output_text", "text", "output_text", "content")
_ARGUMENTS = _Channel("function_call", "function_call_arguments", "arguments")
_INPUT = _Channel("custom_tool_call", "custom_tool_call_input", "input")
_CHANNELS = (
    _TEXT,
    _Channel("message", "refusal", "refusal", "refusal", "content"),
    _Channel("reasoning", "reasoning_summary_text", "text", "summary_text", "summary"),
    _Channel("reasoning", "reasoning_text", "text", "reasoning_text", "content"),
    _ARGUMENTS,
    _INPUT,
)
_DELTAS = {f"response.{channel.event}.delta": channel for channel in _CHANNELS}
_DONE = {f"response.{channel.event}.done": channel for channel in _CHANNELS}
_OF_CALLS = {_ARGUMENTS.item: _ARGUMENTS, _INPUT.item: _INPUT}
_HOLDERS = {"message": ("content",), "reasoning": ("summary", "content")}
_PREFIXES = {"message": "msg", "reasoning": "rs", _ARGUMENTS.item: "fc", _INPUT.item: "ctc"}  # of ids
_PART_EVENTS = {
    f"response.{part}.{what}": (holder, what == "done")
    for part, holder in (("content_part", "content"), ("reasoning_summary_part", "summary"))
    for what in ("added", "done")
}
_ADDED, _ITEM_DONE = "response.output_item.added", "response.output_item.done"
_ITEM_EVENTS = {_ADDED: False, _ITEM_DONE: True}
_LIFE = ("response.created", "response.queued", "response.in_progress")
_API_ENDS = ("response.completed", "response.incomplete", "response.failed")
_ENDS = frozenset({*_API_ENDS, "response.done"})
_STATUSES = ("completed", "incomplete", "failed", "cancelled")


class ResponsesStream(WireFormat):
    """The format of one stream: its events as they were sent if its provider speaks the API, else written here."""

    content_type = CONTENT_TYPE

    def __init__(self, response: ResponseObject) -> None:
        self._response = response
        self._ready: tuple[ResponsesEvents, bytes] | None = None  # for a stream of text: its format, its first events
        self._format: WireFormat | None = None

    def prepare(self) -> None:
        """Make ready what a stream of text that is written here begins with."""
        events = ResponsesEvents(self._response)
        self._ready = events, events.begin_text()

    @property
    def heartbeat(self) -> bytes:
        """A comment."""
        return COMMENT

    def chunks(self, chunks: Chunks) -> bytes:
        """Encode all chunks of one upstream read."""
        if self._format is None:
            return self._begin(chunks)
        return self._format.chunks(chunks)

    def ending(self, ending: Ending, extra: dict[str, Any]) -> bytes:
        """Encode the end."""
        return (self._format or ResponsesEvents(self._response)).ending(ending, extra)

    def error(self, error: MLStreamError) -> bytes:
        """Encode the error."""
        return (self._format or ResponsesEvents(self._response)).error(error)

    def _begin(self, first: Chunks) -> bytes:
        begun = b""
        if begins_as_sent(first):
            self._format = SentEvents(self._response)
        elif self._ready is not None and _begin_with_text(first):
            self._format, begun = self._ready
        else:
            self._format = ResponsesEvents(self._response)
        return begun + self._format.chunks(first)


def whole_response(answer: WholeAnswer, response: ResponseObject) -> bytes:
    """Return an answer as a response; that of a provider with this API is passed on, repaired where it is malformed."""
    if not answer.is_as_sent:
        return items.whole_response(answer, response)
    return to_json(SentEvents(response).whole(answer.response, answer.ending, answer.extra))


@dataclass(slots=True, eq=False)
class _Part:
    """A part of an item, or all that a call is called with: its text as far as it was told."""

    channel: _Channel
    number: int
    source: Any = None  # its number, as its provider has it
    place: dict[str, Any] = field(default_factory=dict)  # members of its events that say where it is
    known: AccumulatedText = field(default_factory=AccumulatedText)
    told: list[str] = field(default_factory=list)

    def written(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return it as its item has it, with all else that is given of it."""
        channel = self.channel
        beside: dict[str, Any] = (
            {"annotations": []} if channel is _TEXT and not isinstance(given.get("annotations"), list) else {}
        )
        return {**given, **beside, "type": channel.part, channel.member: "".join(self.told)}


@dataclass(slots=True, eq=False, kw_only=True)
class _Item(OutputItem):
    """An item of the output. Of a call the client is told once it has a name and an id."""

    index: int
    own: dict[str, Any]  # members that are the same in all its events
    parts: list[_Part] = field(default_factory=list)
    is_told: bool = False
    done: dict[str, Any] = field(default_factory=dict)

    @property
    def call(self) -> _Part | None:
        """All that it is called with, None where it is no call."""
        return self.parts[0] if self.kind in _OF_CALLS else None

    def begun(self, given: Mapping[str, Any], *, is_done: bool) -> dict[str, Any]:
        """Return it as it begins, without a text, with all else that is given of it, maybe as it is done."""
        status = {"status": "in_progress"} if is_done and self.kind != "reasoning" else {}
        return {**given, **self.own, **status, **_texts(self.kind, (), given)}

    def whole(self, given: Mapping[str, Any], status: str) -> dict[str, Any]:
        """Return it as it is done, with all else that is given of it."""
        is_open = self.kind in _PREFIXES and self.kind != "reasoning" and not isinstance(given.get("status"), str)
        return {**given, **self.own, **({"status": status} if is_open else {}), **_texts(self.kind, self.parts, given)}


class SentEvents(WireFormat):
    """The format of one stream of events that pass as they were sent, as far as they are well formed.

    Items are told apart as the provider's reader does it (`openai_output_items`).
    """

    content_type = CONTENT_TYPE

    def __init__(self, response: ResponseObject, max_chars: int = MAX_EVENT_BYTES) -> None:
        self._made = response
        self._begun: dict[str, Any] = {}  # the response, as it began
        self._last: Event | None = None
        self._number = 0  # of the next event
        self._items = OutputItems[_Item]()
        self._call_ids: set[str] = set()
        self._part_of_delta: _Part | None = None  # of the last one, while its item has been told and is not done
        self._room = max_chars
        self._is_over = False

    @property
    def heartbeat(self) -> bytes:
        """A comment."""
        return COMMENT

    def chunks(self, chunks: Chunks) -> bytes:
        """Encode all chunks of one upstream read."""
        if self._is_over:
            return COMMENT
        events = b"".join([self._chunk(chunk) for chunk in to_chunk_list(chunks)])
        return (events or COMMENT) if self._room >= 0 else events + self.error(too_long())

    def ending(self, ending: Ending, extra: dict[str, Any]) -> bytes:
        """Encode what is not done yet, and the last event, with what is to be said beside it."""
        if self._is_over:
            return b""
        self._is_over = True
        last = self._last
        sent = {} if last is None else mapping(last.payload.get("response"))
        done, mended = self._end_response(sent, ending, extra)
        if last is None:
            return done + self._write(f"response.{mended['status']}", {"response": self._begun | mended})
        kind = {"type": f"response.{items.status(ending)}"} if _type_of(last) not in _API_ENDS else {}
        return done + self._pass(last, kind | ({"response": {**sent, **mended}} if mended else {}))

    def whole(self, sent: Mapping[str, Any], ending: Ending, extra: Mapping[str, Any]) -> dict[str, Any]:
        """Return a response that came in one piece, repaired where it is malformed."""
        made = orjson.loads(self._made.begun())
        self._begun = {"id": name(sent.get("id")) or made["id"]}
        return {**sent, "object": "response", **self._end_response(sent, ending, extra)[1]}

    def _end_response(
        self, sent: Mapping[str, Any], ending: Ending, extra: Mapping[str, Any]
    ) -> tuple[bytes, dict[str, Any]]:
        """Return the ends of all items, and those members of the response that are not as they have to be."""
        status = items.status(ending)
        done, output = self._end_items(_objects(sent.get("output")), "incomplete" if status != "completed" else status)
        mended = _differing(sent, {"id": self._begun["id"], "output": output})
        if sent.get("status") not in _STATUSES:
            mended |= {"status": status, "incomplete_details": items.incomplete_details(ending)}
        if not is_of(sent.get("usage"), ResponseUsage | None):
            counts = items.usage_object(ending.usage)
            mended["usage"] = None if counts is None else mapping(sent.get("usage")) | counts
        return done, mended | items.own_member(ending, extra)

    def error(self, error: MLStreamError) -> bytes:
        """Encode the failure that the provider sent, else the error."""
        if self._is_over:
            return b""
        self._is_over = True
        begun = b"" if self._begun else self._begin({})
        if self._last is not None and _type_of(self._last) == "response.failed":
            return begun + self._pass(self._last, self._of_life(self._last.payload, {}))
        failed = orjson.dumps({**self._begun, "status": "failed", "error": items.response_error(error)})
        return begun + error_events(self._number, error, failed)

    def _chunk(self, chunk: Chunk) -> bytes:
        sent = chunk.event
        if sent is None:
            return self._text(chunk.text) if chunk.text else b""
        payload, kind = sent.payload, _type_of(sent)
        begun = b"" if self._begun else self._begin(payload)
        if (channel := _DELTAS.get(kind)) is not None:
            return begun + self._delta(sent, channel)
        if kind in _ENDS:
            self._last = sent
            return begun
        if kind in _LIFE:
            is_told = kind == _LIFE[0] and begun
            return begun if is_told else begun + self._pass(sent, self._of_life(payload, {"output": []}))
        if kind in _ITEM_EVENTS:
            return begun + self._item(sent, mapping(payload.get("item")), is_done=_ITEM_EVENTS[kind])
        if kind in _PART_EVENTS:
            return begun + self._part(sent, mapping(payload.get("part")), *_PART_EVENTS[kind])
        if (channel := _DONE.get(kind)) is not None:
            return begun + self._text_done(sent, channel, channel.member, {})
        if not kind.startswith("response."):  # an error, which is told with the end that it is
            return begun
        item = self._items.with_id(payload.get("item_id"))
        return begun + self._pass(sent, {} if item is None else _differing(payload, {"output_index": item.index}))

    # The response.

    def _begin(self, payload: Mapping[str, Any]) -> bytes:
        """Take from the first event how the response begins; return that beginning where it is another event."""
        given, number = mapping(payload.get("response")), payload.get("sequence_number")
        if payload.get("type") not in _LIFE or not isinstance(given.get("id"), str) or not given["id"]:
            self._begun = orjson.loads(self._made.begun())
        else:
            self._begun = {**given, "output": []}
            if payload["type"] == _LIFE[0]:
                self._number = number if type(number) is int and number >= 0 else 0
                return b""
        return self._write(_LIFE[0], {"response": self._begun})

    def _of_life(self, payload: Mapping[str, Any], members: Mapping[str, Any]) -> dict[str, Any]:
        """Return what is mended in an event of the response itself: it has one id."""
        given = mapping(payload.get("response"))
        known = {name: value for name, value in members.items() if name in given}
        mended = _differing(given, {"id": self._begun["id"], **known})
        return {"response": {**given, **mended}} if mended else {}

    # Items.

    def _item(self, sent: Event, given: dict[str, Any], *, is_done: bool) -> bytes:
        """Return an event of an item, which begins it if none did."""
        if (kind := name(given.get("type"))) is None:
            return b""
        index = sent.payload.get("output_index")
        item = self._items.find(kind, index, given.get("id"))
        if item is None or item.is_other(given, is_done=is_done):
            item = self._new(kind, index, given)
        if item.is_done or (item.is_told and not is_done):  # which was told before
            return b""
        if is_done:
            return self._end(item, given, sent, "completed")
        for channel, number, said in _given_texts(kind, given):
            if item.call is not None:
                item.call.known.start(said, is_replaced=is_json(said))
            elif said:
                self._add_part(item, channel, number).known.start(said)
        told = self._tell(item, given, sent)
        return told + b"".join([self._part_event(item, part) for part in item.parts if told and item.call is None])

    def _tell(
        self, item: _Item, given: Mapping[str, Any], sent: Event | None = None, *, is_last: bool = False
    ) -> bytes:
        """Return the event that begins an item, with what has waited for it: nothing yet of a call without a name."""
        if item.call is not None and not self._name_call(item, given, is_last=is_last):
            return b""
        item.is_told = True
        is_added = sent is not None and _type_of(sent) == _ADDED
        begun = item.begun(given, is_done=not is_added)
        if sent is not None and is_added:
            added = self._pass(sent, _differing(sent.payload, {"output_index": item.index, "item": begun}))
        else:
            added = self._write(_ADDED, {"output_index": item.index, "item": begun})
        waiting = "" if item.call is None else "".join(item.call.told)
        return added + self._delta_event(item.parts[0], waiting) if waiting else added

    def _name_call(self, item: _Item, given: Mapping[str, Any], *, is_last: bool) -> bool:
        """Return whether a call has a name and an id, as far as it ever will."""
        item.call_id = item.call_id or name(given.get("call_id"))
        called, id = item.own.get("name") or name(given.get("name")), item.call_id
        item.own["name"] = called or ""
        if called is None or id is None:
            if not is_last:
                return False
            id = id or item.id
        if id is None or id in self._call_ids:
            id = f"call_{self._made.token}_{item.index}"
        self._call_ids.add(id)
        item.own["call_id"] = id
        return True

    def _end(self, item: _Item, given: Mapping[str, Any], sent: Event | None, status: str) -> bytes:
        """Return the end of an item, with what was not told of it before."""
        self._part_of_delta = None
        events = [] if item.is_told else [self._tell(item, given, is_last=True)]
        events.append(self._say_rest(item, given))
        events += [self._say(part, rest) for part in item.parts if (rest := part.known.end())]
        if item.kind == _ARGUMENTS.item and not item.parts[0].told and status == "completed":  # clients parse them
            events.append(self._say(item.parts[0], "{}"))
        item.done, item.is_done = item.whole(given, status), True
        members = {"output_index": item.index, "item": item.done}
        if sent is None:
            events.append(self._write(_ITEM_DONE, members))
        else:
            events.append(self._pass(sent, _differing(sent.payload, members)))
        return b"".join(events)

    def _end_items(self, given: Sequence[dict[str, Any]], status: str) -> tuple[bytes, list[dict[str, Any]]]:
        """Return the ends of all items that have none yet, and the output, by that which the provider gives at last."""
        events: list[bytes] = []
        known, output = tuple(self._items), dict[int, dict[str, Any]]()
        left = list(known)
        for place, one in enumerate(given):
            if (kind := name(one.get("type"))) is None:
                continue
            item = match(left, kind, place, one)
            if item is not None:
                left.remove(item)
            elif any(_is_same(item, one) for item in known):  # a second time
                continue
            else:
                item = self._new(kind, None, one)
            if not item.is_done:
                events.append(self._end(item, one, None, status))
            output[item.index] = item.whole(one, status)
        for item in left:
            if not item.is_done:
                events.append(self._end(item, {}, None, status))
            output[item.index] = item.done
        return b"".join(events), [output[index] for index in sorted(output)]

    def _new(self, kind: str, index: Any, given: Mapping[str, Any]) -> _Item:
        self._part_of_delta = None
        source, id = index if type(index) is int else None, name(given.get("id"))
        place = max((item.index for item in self._items), default=-1) + 1
        if source is not None and place < source < event_fields.MAX_TOOL_CALLS:  # as it may be
            place = source
        own: dict[str, Any] = {"type": kind}
        if id is not None and self._items.with_id(id) is None:
            own["id"] = id
        elif kind in _PREFIXES:
            own["id"] = f"{_PREFIXES[kind]}_{self._made.token}_{place}"
        if kind == "message":
            own["role"] = "assistant"
        item = _Item(kind=kind, index=place, source=source, own=own, id=id)
        if channel := _OF_CALLS.get(kind):
            item.call_id = name(given.get("call_id"))
            self._add_part(item, channel, None)
        self._items.add(item)
        return item

    # Texts.

    def _part(self, sent: Event, given: dict[str, Any], holder: str, is_done: bool) -> bytes:
        """Return an event of a part, which begins it if none did."""
        channel = _channel(None, holder, given)
        if channel is None:
            return b""
        if is_done:
            return self._text_done(sent, channel, "part", given)
        begun, item = self._item_of(sent.payload, channel)
        number = sent.payload.get(channel.number)
        if any(part.channel is channel and part.source == number for part in item.parts):  # a second time
            return begun
        part = self._add_part(item, channel, number)
        part.known.start(text(given.get(channel.member)))
        return begun + self._pass(sent, _differing(sent.payload, part.place | {"part": part.written(given)}))

    def _delta(self, sent: Event, channel: _Channel) -> bytes:
        payload: dict[str, Any] = sent.payload
        part = self._part_of_delta
        if part is not None and part.channel is channel and payload.items() >= part.place.items():
            begun, repaired = b"", {}
        else:
            begun, item = self._item_of(payload, channel)
            added, part = self._part_of(payload, channel, item)
            begun += added
            repaired = _differing(payload, part.place)
            self._part_of_delta = part if item.is_told else None
        delta = payload.get("delta")
        said = part.known.piece(text(delta))
        part.told.append(said)
        self._room -= len(said)
        if not said or self._part_of_delta is None:
            return begun
        return begun + self._pass(sent, repaired if said is delta else repaired | {"delta": said})

    def _text_done(self, sent: Event, channel: _Channel, member: str, given: dict[str, Any]) -> bytes:
        """Return an event that a text is done, with what was not told of it before; it tells all of the text."""
        payload = sent.payload
        begun, item = self._item_of(payload, channel)
        added, part = self._part_of(payload, channel, item)
        whole = text((given or payload).get(channel.member))
        rest = part.known.whole(whole, len(whole))
        said = self._say(part, rest) if item.is_told else b""
        if not item.is_told:
            part.told.append(rest)
            return b""
        told: Any = "".join(part.told) if member != "part" else part.written(given)
        return begun + added + said + self._pass(sent, _differing(payload, part.place | {member: told}))

    def _text(self, said: str) -> bytes:
        """Return the event of a text that came without one; it goes to the part that was begun last."""
        begun, item = self._item_of({}, _TEXT)
        added, part = self._part_of({}, _TEXT, item)
        return begun + added + self._say(part, part.known.piece(said))

    def _say_rest(self, item: _Item, given: Mapping[str, Any]) -> bytes:
        """Return what a whole item says more than was told of it, in all and in each of its parts."""
        texts = _given_texts(item.kind, given)
        most = sum(len(said) for _, _, said in texts) - sum(part.known.length for part in item.parts)
        events: list[bytes] = []
        for channel, number, said in texts:
            part = next((one for one in item.parts if one.channel is channel and one.source in (None, number)), None)
            if part is None and said and len(said) <= most:
                part = self._add_part(item, channel, number)
                events.append(self._part_event(item, part))
            if part is not None and (rest := part.known.whole(said, most)):
                most -= len(rest)
                events.append(self._say(part, rest))
        return b"".join(events)

    def _item_of(self, payload: Mapping[str, Any], channel: _Channel) -> tuple[bytes, _Item]:
        """Return the item that an event of a text is of, and the event that begins it if there is none to add to."""
        item = self._items.find(channel.item, payload.get("output_index"), payload.get("item_id"))
        if item is not None and not item.is_done:
            return b"", item
        item = self._new(channel.item, payload.get("output_index"), {"id": payload.get("item_id")})
        return self._tell(item, {}), item

    def _part_of(self, payload: Mapping[str, Any], channel: _Channel, item: _Item) -> tuple[bytes, _Part]:
        """Return the part of an item that an event is of, and the event that begins it if there was none."""
        if item.call is not None:
            return b"", item.call
        number = payload.get(channel.number)
        for part in reversed(item.parts):
            if part.channel is channel and (number is None or part.source in (None, number)):
                return b"", part
        part = self._add_part(item, channel, number)
        return self._part_event(item, part), part

    def _add_part(self, item: _Item, channel: _Channel, source: Any) -> _Part:
        part = _Part(channel, sum(part.channel.holder == channel.holder for part in item.parts), source)
        part.place = {"output_index": item.index, "item_id": item.own["id"]}
        if channel.part:
            part.place[channel.number] = part.number
        item.parts.append(part)
        return part

    def _part_event(self, item: _Item, part: _Part) -> bytes:
        """Return the event that begins a part."""
        kind = "reasoning_summary_part" if part.channel.holder == "summary" else "content_part"
        return self._write(f"response.{kind}.added", part.place | {"part": part.written({})})

    def _say(self, part: _Part, said: str) -> bytes:
        """Return a text that no event had as a delta."""
        part.told.append(said)
        self._room -= len(said)
        return self._delta_event(part, said) if said else b""

    def _delta_event(self, part: _Part, said: str) -> bytes:
        beside: dict[str, Any] = {"logprobs": []} if part.channel is _TEXT else {}
        return self._write(f"response.{part.channel.event}.delta", {**part.place, "delta": said, **beside})

    # Events.

    def _write(self, kind: str, members: Mapping[str, Any]) -> bytes:
        self._number += 1
        return event(kind, self._number - 1, orjson.dumps(members)[1:-1])

    def _pass(self, sent: Event, mended: Mapping[str, Any]) -> bytes:
        """Return an event with what is mended in it; its number is the next one."""
        number, self._number = self._number, self._number + 1
        if type(told := sent.payload.get("sequence_number")) is not int or told != number:
            mended = {**mended, "sequence_number": number}
        return _as_sent(Event.of({**sent.payload, **mended}) if mended else sent)


def _differing(given: Mapping[str, Any], members: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of the members that are given otherwise."""
    return {name: value for name, value in members.items() if name not in given or given[name] != value}


def _objects(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _channel(item: str | None, holder: str, part: Mapping[str, Any]) -> _Channel | None:
    """Return which kind of text a part has: of this type of items if that is known."""
    said, alike = part.get("type"), [one for one in _CHANNELS if one.holder == holder and item in (None, one.item)]
    if said == "text":
        return alike[0]
    return next((one for one in alike if one.part == said), None)


def _given_texts(kind: str, given: Mapping[str, Any]) -> list[tuple[_Channel, int, str]]:
    """Return the texts of an item: of what kind they are, the numbers of their parts, and what they say."""
    if channel := _OF_CALLS.get(kind):
        return [(channel, 0, arguments(given.get(channel.member)))]
    found: list[tuple[_Channel, int, str]] = []
    for holder in _HOLDERS.get(kind, ()):
        listed = given.get(holder)
        parts = [{"type": "text", "text": listed}] if isinstance(listed, str) else _objects(listed)
        for number, part in enumerate(parts):
            if (channel := _channel(kind, holder, part)) is not None:
                found.append((channel, number, text(part.get(channel.member))))
    return found


def _texts(kind: str, parts: Sequence[_Part], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of an item that hold its texts; those that are given stay as they are if they say the same."""
    if channel := _OF_CALLS.get(kind):
        return {channel.member: "".join(parts[0].told) if parts else ""}
    members: dict[str, Any] = {}
    for holder in _HOLDERS.get(kind, ()):
        listed = iter(_objects(given.get(holder)))
        written: list[dict[str, Any]] = []
        for part in parts:
            if part.channel.holder == holder:
                one = next(listed, {})
                written.append(part.written(one if one.get("type") == part.channel.part else {}))
        if written or given.get(holder) or holder == _HOLDERS[kind][0]:
            members[holder] = written
    return members


def _is_same(item: _Item, given: Mapping[str, Any]) -> bool:
    """Return whether the ids say that this is an item of the whole output."""
    call_id, id = name(given.get("call_id")), name(given.get("id"))
    if id is not None and item.id is not None:
        return item.id == id
    return call_id is not None and item.call_id == call_id


def _begin_with_text(chunks: Chunks) -> bool:
    if isinstance(chunks, TextRun):
        return True
    return isinstance(chunks, list) and chunks[0].text != "" and chunks[0] == Chunk(chunks[0].text)


def _type_of(sent: Event) -> str:
    return str(sent.payload["type"])


def _as_sent(sent: Event) -> bytes:
    """Return an event, whose payload may have several lines."""
    name = _type_of(sent).encode("ascii", "replace").translate(None, b"\r\n")
    return b"event: %b\ndata: %b\n\n" % (name, sent.data.replace(b"\n", b"\ndata: "))
