"""The door of `/v1/responses`. Nothing is stored: a response is asked for with all that came before it."""

from collections.abc import Mapping
from dataclasses import dataclass
from secrets import token_hex
from time import time
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from opensearch_ml_stream.connectors.conversation.answer import WholeAnswer
from opensearch_ml_stream.connectors.conversation.dialect import OPENAI_RESPONSES, ClientRequest
from opensearch_ml_stream.connectors.errors import InvalidRequest, NotFound
from opensearch_ml_stream.connectors.wire_format import WireFormat
from opensearch_ml_stream.extensions.openai_api.protocol.members import Members
from opensearch_ml_stream.extensions.openai_api.protocol.responses_as_sent import ResponsesStream
from opensearch_ml_stream.extensions.openai_api.protocol.responses_items import ResponseObject
from opensearch_ml_stream.extensions.openai_api.protocol.responses_request import read_responses_request
from opensearch_ml_stream.extensions.openai_api.protocol.responses_response import whole_response

_NEEDS_A_STORE: Mapping[str, str] = {
    "store": "leave it out or send false",
    "background": "leave it out or send false",
    "previous_response_id": "send the items of the conversation so far in input",
    "conversation": "send the items of the conversation so far in input",
}


@dataclass(frozen=True, slots=True)
class AskedResponse:
    """A response that a client asks for."""

    model: str
    is_stream: bool
    request: ClientRequest

    def wire(self) -> WireFormat:
        """Return the format of its stream."""
        return ResponsesStream(self._object())

    def whole(self, answer: WholeAnswer) -> bytes:
        """Return it in one piece."""
        return whole_response(answer, self._object())

    def _object(self) -> ResponseObject:
        return ResponseObject(token_hex(16), int(time()), self.model, self.request.body)


class ResponsesDoor:
    """Reads what clients ask for."""

    def read(self, body: dict[str, Any]) -> AskedResponse:
        """Return what a body asks for. InvalidRequest for what only a store could do."""
        for name, instead in _NEEDS_A_STORE.items():
            if body.get(name):
                raise InvalidRequest(f"{name}: responses and conversations are not stored here; {instead}")
        members = Members(body)
        model, is_stream = members.need("model", str), members.take("stream", bool) or False
        sent = {name: value for name, value in body.items() if name not in ("model", "stream")}
        return AskedResponse(
            model, is_stream, ClientRequest(OPENAI_RESPONSES, {**sent, "store": False}, read_responses_request)
        )


def stored_response_routes(path: str) -> list[Route]:
    """Return the routes below `path`, of stored responses, which there are none of."""
    return [
        Route(path + "/{response_id}", _no_stored_response, methods=["GET", "DELETE"]),
        Route(path + "/{response_id}/cancel", _no_stored_response, methods=["POST"]),
        Route(path + "/{response_id}/input_items", _no_stored_response, methods=["GET"]),
    ]


async def _no_stored_response(request: Request) -> Response:
    """Refuse to look for a stored response."""
    raise NotFound("Responses are not stored here: there is none of this id")
