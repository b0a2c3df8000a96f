"""Responses of predictions that are one JSON object."""

from collections.abc import Awaitable, Mapping
from typing import Any

from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.rest_handlers.http.response_lifecycle import InFlightResponse


async def send_prediction(response: InFlightResponse, prediction: Awaitable[Mapping[str, Any]]) -> None:
    """Send the prediction, or its error, as the whole response."""
    try:
        body = await prediction
    except MLStreamError as error:
        await response.fail(error)
    else:
        await response.send_whole(body)


async def send_encoded_prediction(response: InFlightResponse, prediction: Awaitable[bytes]) -> None:
    """Send the prediction, which is compact JSON, or its error, as the whole response."""
    try:
        content = await prediction
    except MLStreamError as error:
        await response.fail(error)
    else:
        await response.send_encoded(content)
