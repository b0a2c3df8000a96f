"""The route of diagnoses, over a recorder in place of the use case."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, cast

import pytest

from opensearch_ml_stream.connectors.errors import Forbidden, MLStreamError, NotFound, Throttled
from opensearch_ml_stream.extensions.doctor.diagnosis_route import diagnosis_routes
from opensearch_ml_stream.rest_handlers.application import rest_application
from opensearch_ml_stream.rest_handlers.callers import Caller
from opensearch_ml_stream.rest_handlers.http.response_lifecycle import InFlightResponses
from tests.asgi_exchange import JSON_HEADERS, Exchange, send_request
from tests.recording_gate import CALLER, RecordingGate
from tests.scripted_predictions import LIMITS

PATH = "/_plugins/_ml/models/m1/_diagnose"
REPORT = {"works": True, "steps": []}


class RecordingDiagnoses:
    """Notes what is asked of it; raises `error` if there is one, or waits until it is cancelled."""

    def __init__(self, error: MLStreamError | None = None, *, hangs: bool = False) -> None:
        self.asked: list[tuple[object, ...]] = []
        self.begun = asyncio.Event()
        self.cancelled = asyncio.Event()
        self._error = error
        self._hangs = hangs

    async def diagnose(
        self, caller: Caller, model_id: str, parameters: Mapping[str, str], *, record: bool
    ) -> Mapping[str, Any]:
        self.asked.append((caller, model_id, dict(parameters), record))
        self.begun.set()
        if self._hangs:
            try:
                await asyncio.Event().wait()
            finally:
                self.cancelled.set()
        if self._error is not None:
            raise self._error
        return REPORT


class Route:
    """The application of the one route."""

    def __init__(self, diagnoses: RecordingDiagnoses, gate: RecordingGate | None = None) -> None:
        self.in_flight = InFlightResponses(LIMITS)
        self.gate = gate or RecordingGate()
        self.application = rest_application(diagnosis_routes(cast(Any, diagnoses), self.in_flight, self.gate))

    async def post(self, body: object, path: str = PATH, headers: Mapping[str, str] | None = None) -> Exchange:
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        exchange = await send_request(self.application, "POST", path, sent, headers)
        assert exchange.complete and len(self.in_flight) == 0
        return exchange


@pytest.mark.parametrize("slash", ["", "/"])
@pytest.mark.parametrize(
    ("body", "parameters", "record"),
    [
        ({"parameters": {"prompt": "Why?", "n": 1}}, {"prompt": "Why?", "n": "1"}, False),
        ({"parameters": {}, "record": True}, {}, True),
        ({}, {}, False),
    ],
)
async def test_the_use_case_gets_the_parameters_and_whether_to_record(
    body: object, parameters: object, record: bool, slash: str
) -> None:
    diagnoses = RecordingDiagnoses()
    exchange = await Route(diagnoses).post(body, PATH + slash)
    assert (exchange.status, exchange.json()) == (200, REPORT)
    assert diagnoses.asked == [(CALLER, "m1", parameters, record)]


async def test_a_caller_must_be_allowed_to_predict_and_to_see_connectors() -> None:
    route = Route(RecordingDiagnoses())
    await route.post({})
    ml = "cluster:admin/opensearch/ml/"
    assert route.gate.asked == [(ml + "predict",), (ml + "connectors/get",)]


async def test_a_caller_who_may_not_is_refused_before_the_use_case() -> None:
    diagnoses = RecordingDiagnoses()
    exchange = await Route(diagnoses, RecordingGate(Forbidden("no permissions"))).post({})
    assert (exchange.status, diagnoses.asked) == (403, [])


@pytest.mark.parametrize(
    ("body", "path", "headers", "status"),
    [
        (b"", PATH, {}, 400),
        (b"[]", PATH, {}, 400),
        ({"parameters": []}, PATH, {}, 400),
        ({"parameters": {}, "record": "yes"}, PATH, {}, 400),
        ({"text_docs": ["a"]}, PATH, {}, 400),
        ({}, PATH + "?stream=true", {}, 400),
        ({}, PATH, {"content-type": "text/plain"}, 406),
        (b"x" * (LIMITS.max_body_size + 1), PATH, {}, 413),
    ],
)
async def test_a_wrong_request_is_refused_before_the_use_case(
    body: object, path: str, headers: dict[str, str], status: int
) -> None:
    diagnoses = RecordingDiagnoses()
    exchange = await Route(diagnoses).post(body, path, headers)
    assert (exchange.status, diagnoses.asked) == (status, [])


@pytest.mark.parametrize("error", [NotFound("no such model"), Throttled("slow", retry_after="7")])
async def test_an_error_is_a_status_with_opensearchs_body(error: MLStreamError) -> None:
    exchange = await Route(RecordingDiagnoses(error)).post({})
    assert (exchange.status, exchange.json()) == (error.status, error.body())


async def test_a_client_that_disconnects_ends_the_diagnosis() -> None:
    diagnoses = RecordingDiagnoses(hangs=True)
    route = Route(diagnoses)
    exchange = Exchange("POST", PATH, b"{}", JSON_HEADERS)
    async with exchange.running(route.application):
        await diagnoses.begun.wait()
        exchange.disconnect()
        await diagnoses.cancelled.wait()
