"""Routes to which an object is posted: who may ask, what is read, and what is refused before anything is done."""

from typing import Any

import orjson
import pytest
from starlette.requests import Request
from starlette.types import Scope

from opensearch_ml_stream.connectors.errors import InvalidRequest, MLStreamError, Unauthorized, UpstreamError
from opensearch_ml_stream.rest_handlers.callers import Caller
from opensearch_ml_stream.rest_handlers.http.response_lifecycle import InFlightResponse, InFlightResponses
from opensearch_ml_stream.rest_handlers.http.responses import encoded_response
from opensearch_ml_stream.rest_handlers.routes.post_endpoint import PostEndpoint
from tests.asgi_exchange import JSON_HEADERS, Exchange, send_request
from tests.recording_gate import CALLER, RecordingGate
from tests.scripted_predictions import LIMITS

ACTIONS = ("count", "count/some")


class Counting:
    """Responds with the length of a text, or fails."""

    def __init__(self, error: MLStreamError | None = None) -> None:
        self.asked: list[tuple[Caller, str]] = []
        self._error = error

    async def respond(self, response: InFlightResponse, scope: Scope, caller: Caller, text: str) -> None:
        self.asked.append((caller, text))
        if self._error is not None:
            await response.fail(self._error)
            return
        await response.send(encoded_response(Request(scope), orjson.dumps({"length": len(text)})))


def read(body: dict[str, Any]) -> str:
    if "text" not in body:
        raise InvalidRequest("[text] is missing")
    return str(body["text"])


async def post(
    counting: Counting,
    body: object,
    gate: RecordingGate | None = None,
    headers: dict[str, str] | None = None,
    method: str = "POST",
) -> Exchange:
    endpoint = PostEndpoint(InFlightResponses(LIMITS), gate or RecordingGate(), ACTIONS, read, counting.respond)
    return await send_request(endpoint, method, "/count", body, headers)


async def test_what_was_read_is_responded_to_for_callers_with_one_of_the_actions() -> None:
    counting, gate = Counting(), RecordingGate()
    exchange = await post(counting, {"text": "four"}, gate)
    assert (exchange.status, orjson.loads(exchange.body)) == (200, {"length": 4})
    assert (gate.asked, counting.asked) == ([ACTIONS], [(CALLER, "four")])


async def test_a_failure_is_a_status() -> None:
    assert (await post(Counting(UpstreamError("down")), {"text": "four"})).status == 424


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        ({"words": 1}, {}, 400),
        ("no object", {}, 400),
        ({"text": "x" * LIMITS.max_body_size}, {}, 413),
        ({"text": "four"}, {"content-type": "text/plain"}, 406),
    ],
)
async def test_what_cannot_be_read_is_refused(body: object, headers: dict[str, str], status: int) -> None:
    counting = Counting()
    exchange = await post(counting, body, headers={**JSON_HEADERS, **headers})
    assert (exchange.status, counting.asked) == (status, [])


async def test_the_body_of_who_may_not_call_is_not_read() -> None:
    assert (await post(Counting(), "no object", RecordingGate(Unauthorized()))).status == 401


async def test_other_methods_are_refused() -> None:
    assert (await post(Counting(), None, method="GET")).status == 405
