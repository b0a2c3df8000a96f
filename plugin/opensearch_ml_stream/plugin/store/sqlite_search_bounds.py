"""Limits of a search in the embedded store: OpenSearch's own, and a count of steps where it has none.

Beyond a limit the search is an InvalidRequest that names it, with OpenSearch's type of error. docs/limits.md lists
them.
"""

import math
import time
from collections.abc import Callable

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.store.query_string import MAX_CLAUSES

MAX_QUERY_DEPTH = 30
MAX_FIELD_NAME_CHARS = 50_000  # index.mapping.field_name_length.limit
MAX_TERMS = 65_536  # index.max_terms_count
MAX_PATTERN_CHARS = 1_000  # index.max_regex_length
MAX_SORT_KEYS = 32
MAX_HITS = 10_000  # index.max_result_window; here of all lists of hits in a response together
MAX_TOP_HITS = 100  # index.max_inner_result_window
MAX_AGGREGATIONS = 100
MAX_AGGREGATION_DEPTH = 5
MAX_BUCKETS = 65_535  # search.max_buckets
MAX_STEPS = 2_000_000  # of one search of a caller; a step takes about 0.5 µs
STEPS_A_DOCUMENT = 30  # of the index, beside those

SQLITE_STEPS = 1_000  # of SQLite's virtual machine, after which it asks whether to go on
_STEPS_FOR_SQLITE = SQLITE_STEPS // 20
_CHARS_OF_JSON_A_STEP = 200
_STEPS_A_TURN = 2_000
_PAUSE_SECONDS = 0.0001


class SearchWork:
    """The steps that one search may still take, in SQLite and in Python.

    The thread sleeps for a moment after each 2,000 steps: Python runs one thread at a time, and the event loop would
    otherwise wait 5 ms for its turn.
    """

    __slots__ = ("_left", "_limit", "_until_pause")

    def __init__(self, limit: float = math.inf) -> None:
        self._limit = self._left = limit
        self._until_pause = _STEPS_A_TURN

    def spend(self, steps: int) -> None:
        """Take steps; InvalidRequest if there are no more."""
        self._left -= steps
        if self._left < 0:
            raise self.too_much()
        self._until_pause -= steps
        if self._until_pause < 0:
            self._until_pause = _STEPS_A_TURN
            time.sleep(_PAUSE_SECONDS)

    def allow_for(self, documents: int) -> None:
        """Allow what an ordinary search takes for so many documents."""
        self._limit += STEPS_A_DOCUMENT * documents
        self._left += STEPS_A_DOCUMENT * documents

    def spend_on_text(self, size: int) -> None:
        """Take the steps of parsing JSON text of that length."""
        self.spend(1 + size // _CHARS_OF_JSON_A_STEP)

    def spend_in_sqlite(self) -> bool:
        """Take the steps of SQLITE_STEPS; whether SQLite is to stop."""
        self._left -= _STEPS_FOR_SQLITE
        return self.is_spent

    @property
    def is_spent(self) -> bool:
        """Whether more was taken than there was."""
        return self._left < 0

    def too_much(self) -> InvalidRequest:
        """Return the error of a search that takes too many steps."""
        return InvalidRequest(
            f"This search takes more than {self._limit:,} steps, which the embedded store allows; ask for fewer "
            "fields, words, patterns, sort keys and aggregations at a time, or serve with --store http(s)://..."
        )


class Counted:
    """A counter of one kind of thing in a search, which raises an error beyond its limit."""

    __slots__ = ("_error", "_left")

    def __init__(self, limit: int, error: Callable[[], InvalidRequest]) -> None:
        self._left = limit
        self._error = error

    def add(self, count: int = 1) -> None:
        """Count some more; the error if there are too many."""
        self._left -= count
        if self._left < 0:
            raise self._error()


def counted_clauses() -> Counted:
    """Return the counter of a search's clauses: its queries, and the words that they are split into."""
    return Counted(
        MAX_CLAUSES,
        lambda: InvalidRequest(
            f"maxClauseCount is set to {MAX_CLAUSES}: a search may have as many clauses, counting each query, each "
            "word of a text, each 50 characters of a pattern, and for [query_string] each word once for each field",
            type="too_many_clauses",
        ),
    )


def counted_aggregations() -> Counted:
    """Return the count of a search's aggregations."""
    return Counted(
        MAX_AGGREGATIONS, lambda: InvalidRequest(f"A search may have {MAX_AGGREGATIONS} aggregations in all")
    )


def counted_buckets() -> Counted:
    """Return the count of the buckets in a response."""
    return Counted(
        MAX_BUCKETS,
        lambda: InvalidRequest(
            f"Trying to create too many buckets. Must be less than or equal to: [{MAX_BUCKETS}]",
            type="too_many_buckets_exception",
        ),
    )


def counted_hits() -> Counted:
    """Return the counter of the hits in a response, including those of `top_hits`."""
    return Counted(
        MAX_HITS,
        lambda: InvalidRequest(f"A response may have {MAX_HITS} hits, counting those of [top_hits] in each bucket"),
    )


def check_depth(depth: int) -> None:
    """Raise InvalidRequest for queries that are nested too deep."""
    if depth > MAX_QUERY_DEPTH:
        raise InvalidRequest(f"Queries may be nested {MAX_QUERY_DEPTH} deep")


def check_field_name(name: str) -> None:
    """Raise InvalidRequest for a name that no field can have."""
    if len(name) > MAX_FIELD_NAME_CHARS:
        raise InvalidRequest(
            f"Field name [{name[:50]}...] is longer than the limit of [{MAX_FIELD_NAME_CHARS}] characters"
        )
