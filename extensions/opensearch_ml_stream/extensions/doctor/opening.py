"""Open doctor: the route `_diagnose`."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from opensearch_ml_stream.extensions.doctor.diagnosis.stored_models import StoredModelDiagnoses
from opensearch_ml_stream.extensions.doctor.diagnosis_route import diagnosis_routes
from opensearch_ml_stream.plugin.extension import Contribution, Core


@asynccontextmanager
async def open_doctor(core: Core) -> AsyncIterator[Contribution]:
    """Contribute the route."""
    diagnoses = StoredModelDiagnoses(core.models, core.calls, core.predictions, core.observations)
    yield Contribution(routes=diagnosis_routes(diagnoses, core.in_flight, core.gate))
