"""Find the item of an OpenAI response that an event is of, though servers change or leave out ids and places."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from opensearch_ml_stream.connectors.decoding.event_fields import name


@dataclass(slots=True, eq=False, kw_only=True)
class OutputItem:
    """What tells an item from others, as its provider has it; `kind` is its type, or what several types share."""

    kind: str
    source: int | None  # its `output_index`
    id: str | None
    call_id: str | None = None
    is_done: bool = False

    def is_other(self, given: Mapping[str, Any], *, is_done: bool) -> bool:
        """Return whether an event is of another item than this at its place: some servers have one place for all."""
        call_id, id = name(given.get("call_id")), name(given.get("id"))
        if call_id is not None and self.call_id is not None:
            return call_id != self.call_id
        is_named_otherwise = id is not None and self.id is not None and id != self.id
        if not self.is_done:
            return is_named_otherwise and not is_done
        return is_named_otherwise or not is_done


Item = TypeVar("Item", bound=OutputItem)


class OutputItems(Generic[Item]):
    """The items of one response, in the order in which they began."""

    __slots__ = ("_by_id", "_by_place", "_items")

    def __init__(self) -> None:
        self._items: list[Item] = []
        self._by_id: dict[str, Item] = {}
        self._by_place: dict[tuple[int, str], Item] = {}

    def __iter__(self) -> Iterator[Item]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def add(self, item: Item) -> None:
        """Add an item that has begun."""
        self._items.append(item)
        if item.id is not None:
            self._by_id[item.id] = item
        if item.source is not None:
            self._by_place[item.source, item.kind] = item

    def with_id(self, id: Any) -> Item | None:
        """Return the last item with an id."""
        return self._by_id.get(id) if isinstance(id, str) else None

    def find(self, kind: str, index: Any, id: Any) -> Item | None:
        """Return the item of an event: by its id, else by its place, else the last if it is of this kind."""
        item = self._by_id.get(id) if isinstance(id, str) else None
        if item is not None and item.kind == kind and (index is None or item.source in (None, index)):
            return item
        if type(index) is int:
            return self._by_place.get((index, kind))
        last = self._items[-1] if self._items else None
        return last if last is not None and last.kind == kind else None


def match(left: Iterable[Item], kind: str, place: int, given: Mapping[str, Any]) -> Item | None:
    """Return which of the items that were not matched yet is this one of the whole output."""
    alike = [item for item in left if item.kind == kind]
    call_id, id = name(given.get("call_id")), name(given.get("id"))
    if call_id is not None:
        if (same := next((item for item in alike if item.call_id == call_id), None)) is not None:
            return same
        alike = [item for item in alike if item.call_id is None]
    same = next((item for item in alike if id is not None and item.id == id), None)
    at_place = next((item for item in alike if item.source == place), None)
    return same or at_place or next(iter(alike), None)
