"""The routes of `/generate-stream` and of the page that shows them."""

from collections.abc import Callable

from starlette.routing import Route

from opensearch_ml_stream.extensions.generate_stream.http.demo_page import demo_page_route
from opensearch_ml_stream.extensions.generate_stream.http.generate_endpoint import GenerateStreamEndpoint
from opensearch_ml_stream.extensions.generate_stream.paths import GENERATE_STREAM_PATH
from opensearch_ml_stream.extensions.v2.face import InferenceModels
from opensearch_ml_stream.rest_handlers.callers import Gate
from opensearch_ml_stream.rest_handlers.http.response_lifecycle import InFlightResponses


def generate_stream_routes(
    models: InferenceModels, model_name: Callable[[], str], in_flight: InFlightResponses, gate: Gate
) -> list[Route]:
    """Return the routes; `model_name` returns the name or the id of the model as it is set now, "" for none."""
    endpoint = GenerateStreamEndpoint(models, model_name, in_flight, gate)
    return [Route(GENERATE_STREAM_PATH, endpoint), demo_page_route(model_name, gate)]
