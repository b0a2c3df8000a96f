"""What a server does now: predictions in flight, requests and tokens a second, over all of its workers."""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from time import monotonic

from opensearch_ml_stream.plugin.monitoring.statistics import Statistics
from opensearch_ml_stream.plugin.registry.document_access import VisibleDocuments
from opensearch_ml_stream.plugin.registry.stored_documents import Json
from opensearch_ml_stream.rest_handlers.callers import Caller

WINDOW_SECONDS = 10.0  # rates are means over this window, as requests and tokens are counted when a response ends
FRESH_SECONDS = 0.9  # how long a sample is reused
MAX_MODELS = 100  # shown, those with the most predictions in flight first
_PREDICTIONS = ("predict", "batch_predict")


@dataclass(frozen=True, slots=True)
class _Sample:
    """All counts at one time (monotonic, in seconds), by model."""

    at: float
    streams: Mapping[str, int]
    requests: Mapping[str, int]
    tokens: Mapping[str, float]

    @property
    def models(self) -> set[str]:
        return {*self.streams, *self.requests, *self.tokens}


class LiveFigures:
    """The figures of a server, whichever of its workers is asked.

    However many ask, the files that all workers write are read once a second. `tokens` returns how many tokens each
    model has produced.
    """

    def __init__(
        self,
        statistics: Statistics,
        visible: VisibleDocuments,
        tokens: Callable[[], Mapping[str, float]],
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._statistics = statistics
        self._visible = visible
        self._tokens = tokens
        self._clock = clock
        self._samples: deque[_Sample] = deque()
        self._lock = asyncio.Lock()

    async def current(self, caller: Caller) -> Json:
        """Return the figures of the models that the caller may see; Unavailable if the store does not say which."""
        before, now = await self._window()
        visible = await self._visible.models(caller, now.models)
        seconds = now.at - before.at
        streams = {model_id: count for model_id, count in now.streams.items() if model_id in visible}
        requests = {model_id: count for model_id, count in now.requests.items() if model_id in visible}
        has_tokens = any(model_id in visible for model_id in now.tokens)
        shown = sorted({*streams, *requests}, key=lambda id: (-streams.get(id, 0), -requests.get(id, 0), id))
        return {
            "streams": sum(streams.values()),
            "requests_per_second": _rate(before.requests, now.requests, visible, seconds),
            "tokens_per_second": _rate(before.tokens, now.tokens, visible, seconds) if has_tokens else None,
            "models": [
                {"id": model_id, "streams": streams.get(model_id, 0), "requests": requests.get(model_id, 0)}
                for model_id in shown[:MAX_MODELS]
            ],
        }

    async def _window(self) -> tuple[_Sample, _Sample]:
        """Return the oldest sample of the window and the newest, which is taken if there is no fresh one."""
        async with self._lock:
            samples = self._samples
            if not samples or self._clock() - samples[-1].at >= FRESH_SECONDS:
                new = await asyncio.to_thread(self._sample, self._clock())
                while samples and new.at - samples[0].at > WINDOW_SECONDS:
                    samples.popleft()
                samples.append(new)
            return samples[0], samples[-1]

    def _sample(self, at: float) -> _Sample:
        streams = Counter(prediction.model_id for prediction in self._statistics.running().values())
        requests = {
            model_id: sum(figures.actions[name].requests for name in _PREDICTIONS if name in figures.actions)
            for model_id, figures in self._statistics.models().items()
        }
        return _Sample(at, streams, requests, self._tokens())


def _rate(before: Mapping[str, float], now: Mapping[str, float], visible: Collection[str], seconds: float) -> float:
    """Return the growth of the counts per second; counts that restarted at 0 do not reduce it."""
    grown = sum(max(0, count - before.get(id, 0)) for id, count in now.items() if id in visible)
    return round(grown / seconds, 2) if seconds > 0 else 0.0
