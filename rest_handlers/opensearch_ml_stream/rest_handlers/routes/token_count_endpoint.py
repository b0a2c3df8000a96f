"""The endpoint of a client API that counts the input tokens of a conversation without answering it."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import orjson
from starlette.requests import Request
from starlette.types import Scope

from opensearch_ml_stream.connectors.conversation.dialect import ClientRequest
from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.rest_handlers import actions
from opensearch_ml_stream.rest_handlers.callers import Caller, Gate
from opensearch_ml_stream.rest_handlers.http.response_lifecycle import InFlightResponse, InFlightResponses
from opensearch_ml_stream.rest_handlers.http.responses import encoded_response
from opensearch_ml_stream.rest_handlers.routes.post_endpoint import PostEndpoint

ESTIMATE = {"X-Token-Count": "estimate"}
"""The header of a count that was estimated."""

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
    """The use case behind these routes."""

    async def count(self, caller: Caller, name: str, request: ClientRequest) -> Count:
        """Return how many input tokens a request has for a model, by its name or id."""
        ...


def token_count_endpoint(
    counts: Counts,
    in_flight: InFlightResponses,
    gate: Gate,
    read: Callable[[dict[str, Any]], CountRequest],
    beside: Mapping[str, Any],
) -> PostEndpoint[CountRequest]:
    """Return the ASGI endpoint; `beside` are the members of a response beside the count."""

    async def respond(response: InFlightResponse, scope: Scope, caller: Caller, asked: CountRequest) -> None:
        model, request = asked
        try:
            count = await counts.count(caller, model, request)
        except MLStreamError as error:
            await response.fail(error)
            return
        body = orjson.dumps({**beside, "input_tokens": count.input_tokens})
        headers = ESTIMATE if count.is_estimated else None
        await response.send(encoded_response(Request(scope), body, headers=headers))

    return PostEndpoint(in_flight, gate, (actions.PREDICT_STREAM, actions.PREDICT), read, respond)
