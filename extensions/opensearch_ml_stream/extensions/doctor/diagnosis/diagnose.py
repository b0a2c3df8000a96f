"""Diagnose a model: make one streamed call of its provider, step by step, and say what each step found."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from opensearch_ml_stream.connectors.chunks import to_chunk_list
from opensearch_ml_stream.connectors.decoding.contract import Outcome
from opensearch_ml_stream.connectors.errors import InvalidRequest, MLStreamError, UpstreamError
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.connectors.stream_spec import Streaming
from opensearch_ml_stream.extensions.doctor.diagnosis.diagnosing_upstream import (
    NETWORK_STEPS,
    DiagnosingUpstream,
)
from opensearch_ml_stream.extensions.doctor.diagnosis.observed_response import CallTimes, ObservedResponse
from opensearch_ml_stream.extensions.doctor.diagnosis.recording import Recording, harmless_headers
from opensearch_ml_stream.extensions.doctor.diagnosis.recording_privacy import without_secrets
from opensearch_ml_stream.extensions.doctor.diagnosis.report import Report
from opensearch_ml_stream.extensions.doctor.diagnosis.request_steps import prepare
from opensearch_ml_stream.extensions.doctor.diagnosis.step_log import StepLog
from opensearch_ml_stream.extensions.doctor.diagnosis.stream_steps import response_step, stream_steps, timeline
from opensearch_ml_stream.plugin.limits.budgets import Charge
from opensearch_ml_stream.plugin.predictions.compiled_model import CompiledModel
from opensearch_ml_stream.plugin.predictions.provider_call import check_status
from opensearch_ml_stream.plugin.predictions.provider_stream import ProviderStream
from opensearch_ml_stream.plugin.settings import LiveSettings
from opensearch_ml_stream.plugin.upstream import Upstream, UpstreamResponse

TOTAL_SECONDS = 120.0

Open = Callable[[Upstream, ProviderRequest], AbstractAsyncContextManager[UpstreamResponse]]
"""Opens the provider's response by an Upstream, as a prediction does."""

Admit = Callable[[AsyncExitStack, ProviderRequest], Awaitable[Charge | None]]
"""Checks limits and budgets before the call; what it takes of them is released with the stack."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A report, and the recording of the stream if one was asked for; `no_recording` is why there is none."""

    report: Report
    recording: Recording | None = None
    no_recording: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the report with `recording`, a list of its file's lines, or `no_recording`; see `report`."""
        document = self.report.to_json()
        if self.recording is not None:
            document["recording"] = self.recording.to_lines()
        if self.no_recording is not None:
            document["no_recording"] = self.no_recording
        return document


class ModelDiagnosis:
    """One call of a model, step by step. `log` may hold the step `document` already.

    `outcome` and `stream` are those of the call, None before.
    """

    def __init__(self, model: CompiledModel, live: LiveSettings, log: StepLog, *, record: bool) -> None:
        self._model = model
        self._log = log
        self._record = record
        self._times = CallTimes(keeps_bytes=record)
        self._upstream = DiagnosingUpstream(live, log, self._times)
        self.stream: ProviderStream | None = None
        self.outcome: Outcome | MLStreamError | None = None

    async def run(self, parameters: Mapping[str, str], open_response: Open, admit: Admit) -> Diagnosis:
        """Make the call, for at most TOTAL_SECONDS. What `admit` raises is raised; all else is in the report."""
        log = self._log
        try:
            request, spec = prepare(self._model, parameters, log)
        except MLStreamError as error:
            self.outcome = error
            return self._diagnosis(None)
        is_admitted = False
        try:
            async with AsyncExitStack() as held:  # to which an error belongs: one before a response costs nothing
                held.callback(self._upstream.close)
                charge = await admit(held, request)
                is_admitted = True
                async with asyncio.timeout(TOTAL_SECONDS):
                    await self._call(request, spec, charge, open_response)
        except TimeoutError:
            self._give_up()
        except MLStreamError as error:
            if not is_admitted:
                raise
            self.outcome = error
            log.fail_next(error, self._times.now())
        return await self._with_recording(request)

    async def _call(
        self, request: ProviderRequest, spec: Streaming, charge: Charge | None, open_response: Open
    ) -> None:
        times, model = self._times, self._model
        async with self._opening(request, open_response) as response:
            try:
                await check_status(response, model)
            except UpstreamError as error:
                self._log.record(response_step(times, error, model.connector.client_config.max_retry_times))
                raise
            self._log.record(response_step(times, None, model.connector.client_config.max_retry_times))
            decoder = spec.decoder()
            stream = self.stream = ProviderStream(response, decoder, model.redactor, charge)
            while stream.outcome is None:
                times.decoded(len(to_chunk_list(await stream.read())))
            self.outcome = outcome = stream.outcome
            was_whole = not isinstance(outcome, MLStreamError) and isinstance(decoder.outcome, MLStreamError)
            for step in stream_steps(times, outcome, was_whole=was_whole):
                self._log.record(step)

    @asynccontextmanager
    async def _opening(self, request: ProviderRequest, open_response: Open) -> AsyncIterator[UpstreamResponse]:
        """Open the response; a remote model's connection is taken in steps."""
        protocol = self._model.protocol
        if protocol is None:
            async with open_response(self._upstream, request) as response:
                yield response
            return
        here = "the model runs in this sidecar"
        self._log.skip(NETWORK_STEPS, f"{here}: nothing goes over the network")
        self._times.sent()
        async with open_response(self._upstream, request) as response:
            yield ObservedResponse(response, self._times)

    def _give_up(self) -> None:
        """Note that the time is up, after the judgement of what has come by then."""
        error = UpstreamError(
            f"The provider's response was not complete within {TOTAL_SECONDS:g} s, after which the diagnosis gives up",
            type="timeout_exception",
        )
        times = self._times
        self.outcome = error
        if self.stream is None:
            self._log.interrupt(error.reason, "See what the provider's own log says about this call")
            return
        times.broke()
        for step in stream_steps(times, error, was_whole=False):
            self._log.record(step)

    def _diagnosis(self, recording: Recording | None, problem: str | None = None) -> Diagnosis:
        times = self._times
        outcome = self.stream.outcome if self.stream is not None else None
        stream = timeline(times, outcome) if times.head is not None else None
        return Diagnosis(Report(self._log.steps(), stream), recording, problem)

    async def _with_recording(self, request: ProviderRequest) -> Diagnosis:
        times = self._times
        if not self._record:
            return self._diagnosis(None)
        if times.head is None:
            return self._diagnosis(None, "no response came")
        if times.is_too_large:
            return self._diagnosis(None, "the response is larger than a recording may be")
        end = times.last_read if times.end is None else times.end
        recording = Recording(
            times.status,
            harmless_headers(times.headers),
            tuple(times.kept),
            "broken" if times.is_broken else "complete",
            end,
        )
        try:
            credential = self._model.credential
            cleaned = await asyncio.to_thread(without_secrets, recording, credential, request.body)
        except InvalidRequest as error:
            return self._diagnosis(None, error.reason)
        return self._diagnosis(cleaned)
