"""`/models/{id}/_diagnose`: one streamed call of a model's provider, step by step."""

from collections.abc import Mapping
from typing import Any

from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.predict.inputs import RemoteInput, read_predict_input
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.extensions.doctor.diagnosis.stored_models import StoredModelDiagnoses
from opensearch_ml_stream.rest_handlers import actions
from opensearch_ml_stream.rest_handlers.base_path import BASE_PATH
from opensearch_ml_stream.rest_handlers.callers import Caller, Gate
from opensearch_ml_stream.rest_handlers.http.body_memory import BodyReservation
from opensearch_ml_stream.rest_handlers.http.exception_handlers import read_or_refuse
from opensearch_ml_stream.rest_handlers.http.requests import check_query, json_body, query, read_body
from opensearch_ml_stream.rest_handlers.http.response_lifecycle import (
    InFlightResponse,
    InFlightResponses,
    send_prediction,
)
from opensearch_ml_stream.rest_handlers.openapi_schemas import OBJECT
from opensearch_ml_stream.rest_handlers.operation_description import FLAG, OperationDescription, Schema, summary_of

_BODY: Schema = {
    "type": "object",
    "properties": {"parameters": OBJECT, "record": FLAG},
    "examples": [{"parameters": {"prompt": "Why is the sky blue?"}}],
}


class _DiagnoseEndpoint:
    """An ASGI endpoint that ends the provider call when the client disconnects."""

    def __init__(self, diagnoses: StoredModelDiagnoses, in_flight: InFlightResponses, gate: Gate) -> None:
        self._diagnoses = diagnoses
        self._in_flight = in_flight
        self._gate = gate

    def describe(self) -> Mapping[str, OperationDescription]:
        """Return what the OpenAPI document says of it."""
        return {"POST": OperationDescription(summary_of(self.__call__), body=_BODY, is_body_required=True)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Diagnose a model: call its provider once, and say of each step what it found."""
        reservation = BodyReservation(self._in_flight.bodies)
        request = self._read(scope, receive, reservation)
        if (read := await read_or_refuse(scope, receive, send, reservation, request)) is None:
            return
        caller, parameters, record = read
        response = InFlightResponse(scope, receive, send, self._in_flight, reservation)
        diagnosis = self._diagnoses.diagnose(caller, scope["path_params"]["id"], parameters, record=record)
        await response.run(send_prediction(response, diagnosis))

    async def _read(
        self, scope: Scope, receive: Receive, reservation: BodyReservation
    ) -> tuple[Caller, Mapping[str, str], bool]:
        """Read the request of a caller who may do both: call the model, and see its connector."""
        await self._gate.admit(scope, actions.PREDICT)
        caller = await self._gate.admit(scope, actions.CONNECTOR_GET)
        check_query(scope, query(scope))
        self._in_flight.check_room()
        body = await read_body(scope, receive, reservation)
        self._in_flight.check_room()
        if body:
            body = json_body(scope, body)
        predict_input = read_predict_input(body)
        if not isinstance(predict_input, RemoteInput):
            raise InvalidRequest("A diagnosis makes a streamed prediction, which takes [parameters] only")
        return caller, predict_input.parameters, _flag(jsontext.load_object(body), "record")


def diagnosis_routes(diagnoses: StoredModelDiagnoses, in_flight: InFlightResponses, gate: Gate) -> list[Route]:
    """Return the route of diagnoses, with and without a slash at its end."""
    endpoint = _DiagnoseEndpoint(diagnoses, in_flight, gate)
    path = BASE_PATH + "/models/{id}/_diagnose"
    return [Route(path + slash, endpoint, methods=["POST"]) for slash in ("", "/")]


def _flag(body: Mapping[str, Any], name: str) -> bool:
    value = body.get(name, False)
    if not isinstance(value, bool):
        raise InvalidRequest(f"{name} must be true or false")
    return value
