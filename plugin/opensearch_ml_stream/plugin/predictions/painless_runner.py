"""Run the Painless functions of connectors in OpenSearch, in one request for all calls of a prediction.

OpenSearch caches a compiled script by its source, so inputs are never part of the source: they are `params`. All calls
of a source go in one request (`combine_calls`), and equal calls are run once. A source that cannot be combined that way
is run input by input, now and later.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.predict.painless import PainlessCall, combine_calls, split_results
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.plugin.parallel import run_parallel

MAX_PARALLEL_RUNS = 4
MAX_REMEMBERED = 256  # sources that cannot be combined; beyond that many they are tried again


RunScript = Callable[[str, Mapping[str, Any]], Awaitable[str | None]]
"""Returns the result of a script with its `params` as a string; see `Store.run_painless`."""


class PainlessRunner:
    """Runs scripts in the store; remembers the sources that have to be run input by input."""

    def __init__(self, run_script: RunScript) -> None:
        self._run_script = run_script
        self._not_combinable: set[str] = set()

    async def run(self, calls: Sequence[PainlessCall]) -> list[str | None]:
        """Return the results in order. All calls must have the same source."""
        if not calls:
            return []
        by_params = {_params_key(call): call for call in calls}
        distinct = list(by_params.values())
        if len(distinct) < 2 or calls[0].source in self._not_combinable:
            results = await self._run_each(distinct)
        else:
            results = await self._run_combined(distinct)
        result_by_params = dict(zip(by_params, results, strict=True))
        return [result_by_params[_params_key(call)] for call in calls]

    async def _run_combined(self, calls: Sequence[PainlessCall]) -> list[str | None]:
        source = calls[0].source
        combined = combine_calls(source, [call.params for call in calls])
        try:
            return split_results(await self._run_one(combined), len(calls))
        except InvalidRequest:
            # The combined source may be at fault, or one input: run alone, each gets its own error.
            results = await self._run_each(calls)
        if len(self._not_combinable) < MAX_REMEMBERED:
            self._not_combinable.add(source)
        return results

    async def _run_each(self, calls: Sequence[PainlessCall]) -> list[str | None]:
        return await run_parallel([partial(self._run_one, call) for call in calls], MAX_PARALLEL_RUNS)

    async def _run_one(self, call: PainlessCall) -> str | None:
        return await self._run_script(call.source, call.params)


def _params_key(call: PainlessCall) -> str:
    return jsontext.dumps(call.params)
