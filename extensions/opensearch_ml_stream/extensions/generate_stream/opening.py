"""Open `/generate-stream` over the inferences of V2."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from opensearch_ml_stream.extensions.generate_stream.http.tutorial_routes import generate_stream_routes
from opensearch_ml_stream.extensions.generate_stream.settings import GenerateStreamSettings
from opensearch_ml_stream.extensions.v2.face import InferenceModels
from opensearch_ml_stream.plugin.extension import Contribution, Core


@asynccontextmanager
async def open_generate_stream(core: Core) -> AsyncIterator[Contribution]:
    """Contribute the routes; the model is the one that the setting names at each request."""
    models = core.face(InferenceModels)  # type: ignore[type-abstract]

    def model() -> str:
        return core.settings.of(GenerateStreamSettings).generate_stream_model

    yield Contribution(routes=generate_stream_routes(models, model, core.in_flight, core.gate))
