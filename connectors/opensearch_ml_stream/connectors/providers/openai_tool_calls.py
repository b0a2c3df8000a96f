"""Tool calls in OpenAI's shape: tell parallel calls apart, also for servers that use `index` wrongly."""

from typing import Any

from opensearch_ml_stream.connectors.chunks import Chunk, ToolCall
from opensearch_ml_stream.connectors.decoding import event_fields
from opensearch_ml_stream.connectors.decoding.finish_reasons import after_calls, finish_reason


class ToolCalls:
    """The tool calls of one stream. Some servers leave `index` out, others send 0 for every call."""

    __slots__ = ("_highest", "_ids", "_last", "_moved", "_names", "_with_arguments")

    def __init__(self) -> None:
        self._ids: dict[int, str | None] = {}  # the id of each call, by our index
        self._names: dict[int, str] = {}
        self._with_arguments: set[int] = set()
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

    def end(self, native: str, chunks: list[Chunk]) -> None:
        """Append an empty object for each call without arguments, where the answer ends by this word of the provider's.

        Not where that says that the answer was cut off.
        """
        left = self._names.keys() - self._with_arguments
        if left and after_calls(finish_reason(native)) == "tool_calls":
            self._with_arguments |= left
            chunks.append(Chunk(tool_calls=tuple(ToolCall(index, arguments="{}") for index in sorted(left))))

    def _read(self, call: dict[str, Any], place: int | None) -> ToolCall:
        function = call.get("function") or {}
        id, name = event_fields.name(call.get("id")), event_fields.name(function.get("name"))
        own = _number(call.get("index"))
        index = self._index(place if own is None else own, id, name)
        arguments = event_fields.arguments(function.get("arguments"))
        if arguments:
            self._with_arguments.add(index)
        return ToolCall(index, id, name, arguments)

    def _index(self, server_index: int | None, id: str | None, name: str | None) -> int:
        index = self._last if server_index is None else self._moved.get(server_index, server_index)
        if name is not None and self._is_another(index, id, name):
            index = self._highest + 1
            if server_index is not None:
                self._moved[server_index] = index
        if index not in self._ids and len(self._ids) >= event_fields.MAX_TOOL_CALLS:
            raise ValueError("too many tool calls")
        if id is not None or index not in self._ids:
            self._ids[index] = id
            self._highest = max(self._highest, index)
        if name is not None:
            self._names.setdefault(index, name)
        self._last = index
        return index

    def _is_another(self, index: int, id: str | None, name: str) -> bool:
        """Return whether a fragment with a name begins another call than the one that has its index."""
        own = self._ids.get(index)
        if id is not None and own is not None:
            return id != own
        return index in self._with_arguments and name != self._names.get(index, name)


def _number(index: object) -> int | None:
    """Return the server's index, which some write as text or with a point, None for anything else."""
    if isinstance(index, str) and len(index) < 10 and index.isascii() and index.isdecimal():
        return int(index)
    if isinstance(index, float) and index.is_integer():
        return int(index)
    return index if isinstance(index, int) else None
