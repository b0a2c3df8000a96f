"""`POST /v1/messages/count_tokens`: how many input tokens a message would have, without an answer to it."""

from typing import Any, Protocol

import orjson
from starlette.requests import Request
from starlette.types import Scope

from opensearch_ml_stream.connectors.conversation.dialect import ANTHROPIC, ClientRequest
from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.extensions.anthropic_api.protocol.body_members import Members
from opensearch_ml_stream.extensions.anthropic_api.protocol.messages_request import read_counted_conversation
from opensearch_ml_stream.rest_handlers import actions
from opensearch_ml_stream.rest_handlers.callers import Caller, Gate
from opensearch_ml_stream.rest_handlers.http.response_lifecycle import InFlightResponse, InFlightResponses
from opensearch_ml_stream.rest_handlers.http.responses import encoded_response
from opensearch_ml_stream.rest_handlers.routes.posted_object import PostedObject

ESTIMATE = {"X-Token-Count": "estimate"}
"""The header of a count that is no provider's own."""


CountRequest = tuple[str, ClientRequest]
"""The name or id of a model, and what is to be counted."""


class Count(Protocol):
    """A number of input tokens."""

    @property
    def input_tokens(self) -> int:
        """The number."""
        ...

    @property
    def is_estimated(self) -> bool:
        """Whether no provider has counted them."""
        ...


class Counts(Protocol):
    """The use case behind this route."""

    async def count(self, caller: Caller, name: str, request: ClientRequest) -> Count:
        """Return how many input tokens a request has for a model, by its name or id."""
        ...


def count_tokens(counts: Counts, in_flight: InFlightResponses, gate: Gate) -> PostedObject[CountRequest]:
    """Return the ASGI endpoint."""

    async def respond(response: InFlightResponse, scope: Scope, caller: Caller, asked: CountRequest) -> None:
        model, request = asked
        try:
            count = await counts.count(caller, model, request)
        except MLStreamError as error:
            await response.fail(error)
            return
        body = orjson.dumps({"input_tokens": count.input_tokens})
        headers = ESTIMATE if count.is_estimated else None
        await response.send(encoded_response(Request(scope), body, headers=headers))

    return PostedObject(in_flight, gate, (actions.PREDICT_STREAM, actions.PREDICT), _read, respond)


def _read(body: dict[str, Any]) -> CountRequest:
    model = Members(body).required_text("model")
    body.pop("model")
    return model, ClientRequest(ANTHROPIC, body, read_counted_conversation)
