"""Painless functions of connectors, run by OpenSearch: one request for all the calls of a prediction.

OpenSearch keeps a compiled script by its source, so a source never holds an input: those are `params`. All runs of a
source go in one request (`painless_batch`), and equal ones are run once. A source that cannot be combined that way
is run input by input, and remembered as such.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.predict import painless_batch
from opensearch_ml_stream.connectors.predict.painless import PainlessCall
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.plugin.predictions.parallel_calls import run_in_order

MAX_PARALLEL_RUNS = 4
MAX_REMEMBERED = 256


class PainlessStore(Protocol):
    """The part of a store that is needed here."""

    async def run_painless(self, source: str, params: Mapping[str, Any]) -> str | None: ...


class PainlessRunner:
    """Runs scripts through the store."""

    def __init__(self, store: PainlessStore) -> None:
        self._store = store
        self._apart: set[str] = set()  # sources that cannot be combined

    async def run(self, calls: Sequence[PainlessCall]) -> list[str | None]:
        """The results in order. All calls have the same source."""
        if not calls:
            return []
        distinct = {_key(call): call for call in calls}
        if len(distinct) < 2 or calls[0].source in self._apart:
            found = await self._each(list(distinct.values()))
        else:
            found = await self._together(list(distinct.values()))
        by_key = dict(zip(distinct, found, strict=True))
        return [by_key[_key(call)] for call in calls]

    async def _together(self, calls: Sequence[PainlessCall]) -> list[str | None]:
        source = calls[0].source
        combined = painless_batch.for_all(source, [call.params for call in calls])
        try:
            return painless_batch.results(await self._one(combined), len(calls))
        except InvalidRequest:
            # The combined source may be at fault, or one input: run alone, each gets its own error.
            found = await self._each(calls)
        if len(self._apart) < MAX_REMEMBERED:
            self._apart.add(source)
        return found

    async def _each(self, calls: Sequence[PainlessCall]) -> list[str | None]:
        return await run_in_order([partial(self._one, call) for call in calls], MAX_PARALLEL_RUNS)

    async def _one(self, call: PainlessCall) -> str | None:
        return await self._store.run_painless(call.source, call.params)


def _key(call: PainlessCall) -> str:
    return jsontext.dumps(call.params)
