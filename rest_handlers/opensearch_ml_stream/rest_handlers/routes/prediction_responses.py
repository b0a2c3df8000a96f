"""Responses of predictions that are one JSON object."""

from collections.abc import Awaitable, Mapping
from typing import Any

from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.rest_handlers.http.response_lifecycle import InFlightResponse


async def send_prediction(response: InFlightResponse, prediction: Awaitable[Mapping[str, Any] | bytes]) -> None:
    """Send the prediction, an object or compact JSON, or its error, as the whole response."""
    try:
        body = await prediction
    except MLStreamError as error:
        await response.fail(error)
    else:
        await response.send_whole(body)
