"""The document of a counter in one window: what each server has spent, by its id.

Only the sums are searched: for operators. An operator who deletes it forgives what it holds.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from opensearch_ml_stream.connectors.spending.token_spending import Amount
from opensearch_ml_stream.plugin.limits.budgets.spending_table import Counter
from opensearch_ml_stream.plugin.store import Document

MAX_SERVERS = 100  # with entries of their own; more have started in one window only if they keep ending
ENDED = ""  # the entry of servers that seem to have ended: it cannot be a server's name

_ENDED_MILLIS = 3_600_000  # without a write
_MIN_KEPT_MILLIS = 3_600_000  # of a document, after its window
_MAX_USER_CHARS = 512


@dataclass(frozen=True, slots=True)
class Entry:
    """What a server has spent in the window, and when it said so (milliseconds since 1970)."""

    amount: Amount
    written_at: int


def document_id(counter: Counter, window_end: int) -> str:
    """Return the id of the document."""
    return f"{counter.key}-{window_end - 1000 * counter.window_seconds}"


def read_entries(document: Document | None) -> dict[str, Entry]:
    """Return the entries by server; none without a document."""
    servers: Mapping[str, Mapping[str, Any]] = {} if document is None else document.source.get("servers", {})
    return {
        name: Entry(Amount(float(entry["tokens"]), float(entry["cost"])), int(entry["written_at"]))
        for name, entry in servers.items()
    }


def document_source(counter: Counter, window_end: int, entries: Mapping[str, Entry], now: int) -> dict[str, Any]:
    """Return the document with these entries; those of ended servers are one if there are more than MAX_SERVERS."""
    if len(entries) > MAX_SERVERS:
        entries = _with_ended_as_one(entries, now)
    total = sum_of(entries.values())
    length = 1000 * counter.window_seconds
    return {
        "model_id": counter.model_id,
        **({} if counter.user is None else {"user": counter.user[:_MAX_USER_CHARS]}),
        "window_seconds": counter.window_seconds,
        "window_start": window_end - length,
        "window_end": window_end,
        "delete_after": window_end + max(length, _MIN_KEPT_MILLIS),
        "tokens": total.tokens,
        "cost": total.cost,
        "servers": {
            name: {"tokens": entry.amount.tokens, "cost": entry.amount.cost, "written_at": entry.written_at}
            for name, entry in entries.items()
        },
    }


def _with_ended_as_one(entries: Mapping[str, Entry], now: int) -> dict[str, Entry]:
    kept = {name: entry for name, entry in entries.items() if name != ENDED and now - entry.written_at < _ENDED_MILLIS}
    ended = sum_of(entry for name, entry in entries.items() if name not in kept)
    return {**kept, ENDED: Entry(ended, now)}


def sum_of(entries: Iterable[Entry]) -> Amount:
    """Return the spending of all these servers."""
    return sum((entry.amount for entry in entries), Amount())
