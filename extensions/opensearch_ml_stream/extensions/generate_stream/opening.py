"""Open `/generate-stream` over the inferences of V2."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from starlette.routing import Route

from opensearch_ml_stream.extensions.generate_stream.demo_page import demo_page_route
from opensearch_ml_stream.extensions.generate_stream.extension import GENERATE_STREAM_PATH, GenerateStreamSettings
from opensearch_ml_stream.extensions.generate_stream.generate_endpoint import GenerateStreamEndpoint
from opensearch_ml_stream.extensions.v2.face import InferenceModels
from opensearch_ml_stream.plugin.extension import Contribution, Core
from opensearch_ml_stream.rest_handlers.callers import Gate
from opensearch_ml_stream.rest_handlers.http.response_lifecycle import InFlightResponses


def generate_stream_routes(
    models: InferenceModels, model_name: Callable[[], str], in_flight: InFlightResponses, gate: Gate
) -> list[Route]:
    """Return the routes; `model_name` returns the name or the id of the model as it is set now, "" for none."""
    endpoint = GenerateStreamEndpoint(models, model_name, in_flight, gate)
    return [Route(GENERATE_STREAM_PATH, endpoint), demo_page_route(model_name, gate)]


@asynccontextmanager
async def open_generate_stream(core: Core) -> AsyncIterator[Contribution]:
    """Contribute the routes; the model is the one that the setting names at each request."""
    models = core.face(InferenceModels)  # type: ignore[type-abstract]

    def model() -> str:
        return core.settings.of(GenerateStreamSettings).generate_stream_model

    yield Contribution(routes=generate_stream_routes(models, model, core.in_flight, core.gate))
