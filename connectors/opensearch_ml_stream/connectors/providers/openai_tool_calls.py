"""Tool calls in OpenAI's shape: tell parallel calls apart, also for servers that use `index` wrongly."""

from typing import Any

from opensearch_ml_stream.connectors.chunks import ToolCall
from opensearch_ml_stream.connectors.decoding import event_fields


class ToolCalls:
    """The tool calls of one stream. Some servers leave `index` out, others send 0 for every call."""

    __slots__ = ("_highest", "_ids", "_last", "_moved")

    def __init__(self) -> None:
        self._ids: dict[int, str | None] = {}  # the id of each call, by our index
        self._highest = 0  # the highest of our indexes
        self._moved: dict[int, int] = {}  # the server's index -> ours, where a later call has the index of another
        self._last = 0  # our index of the last fragment

    def read_all(self, calls: list[dict[str, Any]]) -> tuple[ToolCall, ...]:
        """Return the elements of a `tool_calls` as fragments, each with an index that no other call has.

        Several elements without an index are told apart by their place in the list, one alone goes on with the last.
        """
        if len(calls) == 1:
            return (self._read(calls[0], None),)
        return tuple(self._read(call, place) for place, call in enumerate(calls))

    def _read(self, call: dict[str, Any], place: int | None) -> ToolCall:
        function = call.get("function") or {}
        id, name = event_fields.name(call.get("id")), event_fields.name(function.get("name"))
        index = self._index(call.get("index", place), id, starts=name is not None)
        return ToolCall(index, id, name, event_fields.arguments(function.get("arguments")))

    def _index(self, server_index: object, id: str | None, *, starts: bool) -> int:
        known_index = server_index if isinstance(server_index, int) else None
        index = self._last if known_index is None else self._moved.get(known_index, known_index)
        if starts and id is not None and self._ids.get(index) not in (None, id):
            index = self._highest + 1
            if known_index is not None:
                self._moved[known_index] = index
        if index not in self._ids and len(self._ids) >= event_fields.MAX_TOOL_CALLS:
            raise ValueError("too many tool calls")
        if id is not None or index not in self._ids:
            self._ids[index] = id
            self._highest = max(self._highest, index)
        self._last = index
        return index
