"""The ASGI application: the stream route in front, a Starlette router behind it for everything else."""

from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.routing import BaseRoute

from opensearch_ml_stream.rest_handlers.callers import Gate
from opensearch_ml_stream.rest_handlers.http.browsers import BrowserPolicy
from opensearch_ml_stream.rest_handlers.http.exception_handlers import exception_handlers
from opensearch_ml_stream.rest_handlers.http.response_lifecycle import InFlightResponses
from opensearch_ml_stream.rest_handlers.routes.predict_stream import Predictions, PredictStream


def rest_application(routes: Sequence[BaseRoute]) -> Starlette:
    """Return the application of all routes but the stream's; errors have OpenSearch's shape."""
    application = Starlette(routes=routes, exception_handlers=exception_handlers())
    application.router.redirect_slashes = False  # clients of OpenSearch follow no redirects
    return application


def streaming_application(
    routes: Sequence[BaseRoute],
    predictions: Predictions,
    in_flight: InFlightResponses,
    gate: Gate,
    policy: BrowserPolicy,
) -> PredictStream:
    """Return the whole application: no middleware and no router stands between a stream and its client."""
    return PredictStream(predictions, in_flight, gate, rest_application(routes), policy)
