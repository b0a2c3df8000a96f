"""Merge embedding requests of one model that come within a short time into one call of the provider.

Only the call is shared: each prediction is checked, limited and charged before its request is merged, and reads its own
part of the response. A batch is of one version of a model, and of requests that differ only in their texts. It is sent
when it is full, or `max_wait_ms` after its first request, by a task of its own, which is cancelled when no caller waits
for it any more. Where one caller's texts may be why the call failed, each caller's request is sent alone, so that no
other caller gets the error.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import partial

from opensearch_ml_stream.connectors.errors import InvalidRequest, MLStreamError, UpstreamError
from opensearch_ml_stream.connectors.predict.inputs import PredictInput, TextDocsInput
from opensearch_ml_stream.connectors.predict.merged_calls import Merging, find_merging, split_response
from opensearch_ml_stream.connectors.predict.pre_process import Step
from opensearch_ml_stream.connectors.provider_errors import error_in_body
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.connectors.syntax.jsontext import JsonText
from opensearch_ml_stream.plugin.predictions.compiled_model import CompiledModel
from opensearch_ml_stream.plugin.predictions.whole_prediction import MAX_REQUEST_BYTES, Fetch

STATUSES_OF_INPUT = frozenset({400, 413, 422})  # with which a provider refuses what is in a request

_Key = tuple[CompiledModel, tuple[tuple[str, bool, str], ...]]


FetchFor = Callable[[CompiledModel, ProviderRequest], Awaitable[bytes]]
"""Sends one request to a model's provider and returns the body of its 2xx response; see `ProviderCalls.fetch`."""


@dataclass(slots=True, eq=False)
class _Member:
    """One caller's request in a batch; `done` gets its response, or None where it has to be sent alone."""

    texts: Sequence[str]
    request: ProviderRequest
    done: asyncio.Future[bytes | None]


@dataclass(slots=True, eq=False)
class _Batch:
    """Requests of a model with the same parameters; it has `texts` and `size`, bytes of their own requests."""

    key: _Key
    parameters: Mapping[str, str]
    merging: Merging
    members: list[_Member] = field(default_factory=list)
    texts: int = 0
    size: int = 0
    timer: asyncio.TimerHandle | None = None
    call: asyncio.Task[Sequence[bytes | None]] | None = None  # None before it is sent

    def add(self, texts: Sequence[str], request: ProviderRequest) -> _Member:
        member = _Member(texts, request, asyncio.get_running_loop().create_future())
        self.members.append(member)
        self.texts += len(texts)
        self.size += len(request.body)
        return member

    def remove(self, member: _Member) -> None:
        self.members.remove(member)
        self.texts -= len(member.texts)
        self.size -= len(member.request.body)


class EmbeddingBatches:
    """The batches of all models that have `_sidecar.batching`."""

    def __init__(self, fetch: FetchFor) -> None:
        self._fetch_alone = fetch
        self._open: dict[_Key, _Batch] = {}  # those that are not sent yet

    def sending(self, model: CompiledModel, predict_input: PredictInput) -> Fetch:
        """Return what sends the requests of a prediction: merged with others if the model's settings say so."""
        if model.settings.batching is None or model.own_requests is not None:
            return partial(self._fetch_alone, model)
        return partial(self.fetch, model, predict_input)

    async def fetch(self, model: CompiledModel, predict_input: PredictInput, request: ProviderRequest) -> bytes:
        """Return the body of the response to a prediction's request, as if it had been sent alone.

        Raises what a request sent alone does, and UpstreamError if a merged call has another number of embeddings.
        """
        if (found := self._join(model, predict_input, request)) is not None:
            batch, member = found
            try:
                body = await member.done
            except asyncio.CancelledError:
                self._leave(batch, member)
                raise
            if body is not None:
                return body
        return await self._fetch_alone(model, request)

    def _join(
        self, model: CompiledModel, predict_input: PredictInput, request: ProviderRequest
    ) -> tuple[_Batch, _Member] | None:
        """Put the request into a batch; return None for one that goes alone."""
        settings = model.settings.batching
        if settings is None or not isinstance(predict_input, TextDocsInput):
            return None
        parameters, texts, size = predict_input.parameters, predict_input.text_docs, len(request.body)
        merging = find_merging(model.connector, model.action().action, parameters)
        if merging is None:
            return None
        most = settings.max_docs if merging.max_texts is None else min(settings.max_docs, merging.max_texts)
        if len(texts) >= most or size > MAX_REQUEST_BYTES:
            return None
        key = model, tuple(sorted((name, isinstance(text, JsonText), text) for name, text in parameters.items()))
        batch = self._open.get(key)
        if batch is not None and (batch.texts + len(texts) > most or batch.size + size > MAX_REQUEST_BYTES):
            self._send(batch)
            batch = None
        if batch is None:
            batch = self._open[key] = _Batch(key, parameters, merging)
            wait = settings.max_wait_ms / 1000
            batch.timer = asyncio.get_running_loop().call_later(wait, self._send, batch)
        member = batch.add(texts, request)
        if batch.texts == most:
            self._send(batch)
        return batch, member

    def _send(self, batch: _Batch) -> None:
        self._close(batch)
        members = [member for member in batch.members if not member.done.done()]  # not of who is just disconnecting
        if len(members) == 1:
            members[0].done.set_result(None)
        elif members:
            batch.members = members
            batch.call = asyncio.create_task(self._call(batch, tuple(members)))
            batch.call.add_done_callback(partial(_settle, tuple(members)))

    def _close(self, batch: _Batch) -> None:
        if self._open.get(batch.key) is batch:
            del self._open[batch.key]
        if batch.timer is not None:
            batch.timer.cancel()

    def _leave(self, batch: _Batch, member: _Member) -> None:
        """Remove the request of a caller that has disconnected; texts that were already sent stay in their call."""
        if member not in batch.members:
            return
        batch.remove(member)
        if batch.members:
            return
        if batch.call is None:
            self._close(batch)
        else:
            batch.call.cancel()

    async def _call(self, batch: _Batch, members: Sequence[_Member]) -> Sequence[bytes | None]:
        """Call the provider with the texts of all members; return the body for each, None for one to be sent alone."""
        model, _ = batch.key
        texts = tuple(text for member in members for text in member.texts)
        action = model.action()
        steps = model.steps(action, TextDocsInput(texts, batch.parameters))
        [request] = [action.render(step.parameters) for step in steps if isinstance(step, Step)]
        body = await self._fetch_alone(model, request)
        if error_in_body(body) is not None:  # which may be about the texts of one member
            return [None] * len(members)
        return split_response(body, batch.merging.rows, [member.texts for member in members])


def _settle(members: Sequence[_Member], call: asyncio.Task[Sequence[bytes | None]]) -> None:
    """Give each waiting member the result of the call: its response, or a copy of the error."""
    error = None if call.cancelled() else call.exception()
    for number, member in enumerate(members):
        if member.done.done():
            continue
        if call.cancelled():
            member.done.cancel()
        elif error is None:
            member.done.set_result(call.result()[number])
        elif _may_be_of_one(error):
            member.done.set_result(None)
        else:
            member.done.set_exception(_error_of_one(error, len(members)))


def _may_be_of_one(error: BaseException) -> bool:
    """Whether one member's texts may be why the call for all failed."""
    if isinstance(error, UpstreamError):
        return error.provider_status in STATUSES_OF_INPUT or error.status == 400
    return isinstance(error, InvalidRequest)


def _error_of_one(error: BaseException, members: int) -> BaseException:
    """Return a member's own copy of an error, without the provider's message, which may hold another's text."""
    if isinstance(error, UpstreamError) and error.provider_status is not None:
        return UpstreamError(
            f"Error from remote service: status {error.provider_status}. Its message is left out, since the call was "
            f"merged from {members} requests (_sidecar.batching)",
            type=error.type,
            retry_after=error.retry_after,
            provider_status=error.provider_status,
        )
    return copy(error) if isinstance(error, MLStreamError) else error
