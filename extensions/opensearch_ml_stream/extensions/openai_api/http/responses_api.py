"""`/v1/responses`. Nothing is stored, so each request holds the whole conversation."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from opensearch_ml_stream.connectors.conversation.answer import WholeAnswer
from opensearch_ml_stream.connectors.conversation.conversation import Conversation, JSONObject
from opensearch_ml_stream.connectors.conversation.dialect import OPENAI_RESPONSES, ClientRequest
from opensearch_ml_stream.connectors.errors import InvalidRequest, NotFound
from opensearch_ml_stream.connectors.wire_format import WireFormat
from opensearch_ml_stream.extensions.openai_api.extension import RESPONSES_PATH
from opensearch_ml_stream.extensions.openai_api.http.completions_api import Clock
from opensearch_ml_stream.extensions.openai_api.protocol.request_members import Members
from opensearch_ml_stream.extensions.openai_api.protocol.responses_as_sent import ResponsesStream, whole_response
from opensearch_ml_stream.extensions.openai_api.protocol.responses_items import ResponseObject
from opensearch_ml_stream.extensions.openai_api.protocol.responses_request import read_responses_request
from opensearch_ml_stream.rest_handlers import actions
from opensearch_ml_stream.rest_handlers.callers import Gate
from opensearch_ml_stream.rest_handlers.routes.conversation_endpoint import new_id
from opensearch_ml_stream.rest_handlers.routes.token_count_endpoint import CountRequest

_NEEDS_A_STORE: Mapping[str, str] = {
    "store": "be true: responses are not stored here",
    "background": "be true: responses are not stored here, so nobody could fetch it",
    "previous_response_id": "be used: responses are not stored here; send all items of the conversation in input",
    "conversation": "be used: conversations are not stored here; send all items of it in input",
}


@dataclass(frozen=True, slots=True)
class ResponseRequest:
    """A request for a response."""

    model: str
    is_stream: bool
    request: ClientRequest
    created_at: int

    def wire(self) -> WireFormat:
        """Return the format of the stream."""
        return ResponsesStream(self._object())

    def whole(self, answer: WholeAnswer) -> bytes:
        """Return the response in one piece."""
        return whole_response(answer, self._object())

    def _object(self) -> ResponseObject:
        return ResponseObject(new_id(), self.created_at, self.model, self.request.body)


@dataclass(frozen=True, slots=True)
class ResponsesAPI:
    """The API of `/v1/responses`."""

    clock: Clock

    def read(self, body: dict[str, Any]) -> ResponseRequest:
        """Return the request of a body. InvalidRequest for members that need stored responses."""
        _refuse_a_store(body)
        members = Members(body)
        model, is_stream = members.need("model", str), members.take("stream", bool) or False
        sent = {name: value for name, value in body.items() if name not in ("model", "stream")}
        request = ClientRequest(OPENAI_RESPONSES, {**sent, "store": False}, read_responses_request)
        return ResponseRequest(model, is_stream, request, self.clock() // 1000)


INPUT_TOKENS: Mapping[str, Any] = {"object": "response.input_tokens"}
"""Members of a response that counts input tokens, beside the count."""


def read_counted_response(body: dict[str, Any]) -> CountRequest:
    """Return the model, and the request whose tokens are counted. InvalidRequest for members that need a store."""
    _refuse_a_store(body)
    model = Members(body).need("model", str)
    sent = {name: value for name, value in body.items() if name != "model"}
    return model, ClientRequest(OPENAI_RESPONSES, sent, _read_counted)


def _read_counted(body: JSONObject) -> Conversation:
    """Return the conversation of a body, which may be without input."""
    return read_responses_request({**body, "input": []} if body.get("input") is None else body)


def _refuse_a_store(body: JSONObject) -> None:
    for name, why in _NEEDS_A_STORE.items():
        if body.get(name):
            raise InvalidRequest(f"{name} cannot {why}")


def stored_response_routes(gate: Gate) -> list[Route]:
    """Return the routes of stored responses, which respond with 404: none is stored."""

    async def find(request: Request) -> Response:
        """Respond that there is no stored response."""
        await gate.admit(request.scope, actions.PREDICT_STREAM, actions.PREDICT)
        raise NotFound("Responses are not stored here, so there is none of this id")

    return [Route(RESPONSES_PATH + "/{response_id}", find, methods=["GET", "DELETE"])]
