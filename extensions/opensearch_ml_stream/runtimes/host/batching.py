"""Adaptive batching: unary calls that come close together are one prediction.

A batch is open for `max_batch_time` seconds from its first request on, or until it has `max_batch_size` requests, as in
MLServer. Unlike there, only requests that fit each other share one, and if the prediction of a batch fails, each of its
requests is predicted alone, so that one bad request fails alone.
"""

import asyncio
from typing import Any

from opensearch_ml_stream.runtimes.host.figures import Figures
from opensearch_ml_stream.runtimes.host.merging import batch_key, merge, split
from opensearch_ml_stream.runtimes.host.served_model import Predict


class _Batch:
    """Requests and the futures of their responses; `timer` runs them."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.responses: list[asyncio.Future[Any]] = []
        self.timer: asyncio.TimerHandle | None = None
        self.task: asyncio.Task[None] | None = None


class AdaptiveBatcher:
    """Calls `predict_one` with merged requests; `predict` is called in its place."""

    def __init__(self, predict_one: Predict, max_batch_size: int, max_batch_time: float, figures: Figures) -> None:
        self._predict_one = predict_one
        self._max_batch_size = max_batch_size
        self._max_batch_time = max_batch_time
        self._figures = figures
        self._open: dict[str, _Batch] = {}
        self._running: set[_Batch] = set()

    async def predict(self, request: Any) -> Any:
        """Predict a request with others of its kind; alone if it cannot be merged."""
        key = batch_key(request)
        if key is None:
            return await self._predict_one(request)
        loop = asyncio.get_running_loop()
        batch = self._open.get(key)
        if batch is None:
            batch = self._open[key] = _Batch()
            batch.timer = loop.call_later(self._max_batch_time, self._run, key, batch)
        response: asyncio.Future[Any] = loop.create_future()
        batch.requests.append(request)
        batch.responses.append(response)
        if len(batch.requests) >= self._max_batch_size:
            self._run(key, batch)
        try:
            return await response
        except asyncio.CancelledError:
            self._leave(batch)
            raise

    def _run(self, key: str, batch: _Batch) -> None:
        del self._open[key]
        if batch.timer is not None:
            batch.timer.cancel()
        left = [pair for pair in zip(batch.requests, batch.responses, strict=True) if not pair[1].done()]
        if left:
            batch.requests, batch.responses = [one for one, _ in left], [response for _, response in left]
            self._running.add(batch)
            batch.task = asyncio.get_running_loop().create_task(self._predict_batch(batch))

    def _leave(self, batch: _Batch) -> None:
        """End the prediction of a batch that nobody waits for."""
        if batch.task is not None and all(response.done() for response in batch.responses):
            batch.task.cancel()

    async def _predict_batch(self, batch: _Batch) -> None:
        try:
            await self._predict_merged(batch)
        except BaseException as error:  # noqa: BLE001 - the calls raise it, each in its own task
            for response in batch.responses:
                if not response.done():
                    response.set_exception(_as_exception(error))
        finally:
            self._running.discard(batch)

    async def _predict_merged(self, batch: _Batch) -> None:
        self._figures.batches += 1
        self._figures.batched_requests += len(batch.requests)
        if len(batch.requests) > 1:
            try:
                merged = await self._predict_one(merge(batch.requests))
                found = split(batch.requests, merged)
            except Exception:  # noqa: BLE001 - a model raises what it likes, and will again to whom it belongs
                await asyncio.gather(*map(self._predict_alone, batch.requests, batch.responses))
                return
            for response, own in zip(batch.responses, found, strict=True):
                if not response.done():
                    response.set_result(own)
        else:
            await self._predict_alone(batch.requests[0], batch.responses[0])

    async def _predict_alone(self, request: Any, response: "asyncio.Future[Any]") -> None:
        if response.done():
            return
        try:
            own = await self._predict_one(request)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the request's call raises it
            if not response.done():
                response.set_exception(error)
        else:
            if not response.done():
                response.set_result(own)


def _as_exception(error: BaseException) -> BaseException:
    return error if not isinstance(error, asyncio.CancelledError) else RuntimeError("The prediction was cancelled")
