"""The use cases of the playground, which note what they are asked, and routes over them."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from starlette.applications import Starlette

from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.extensions.playground.http.playground_routes import playground_routes
from opensearch_ml_stream.extensions.playground.service.blueprint_models import NewModel
from opensearch_ml_stream.rest_handlers.application import rest_application
from opensearch_ml_stream.rest_handlers.base_path import Paths
from opensearch_ml_stream.rest_handlers.callers import Caller, Gate
from opensearch_ml_stream.rest_handlers.http.response_lifecycle import InFlightResponses
from tests.scripted_predictions import LIMITS

FIGURES: dict[str, Any] = {"streams": 1, "requests_per_second": 0.5, "tokens_per_second": None, "models": []}


class RecordingPlayground:
    """Models and statistics of the playground; `error` is raised by the statistics, if there is one."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.error: MLStreamError | None = None

    async def listed(self, caller: Caller, *, shows_settings: bool) -> Sequence[Mapping[str, Any]]:
        self.asked.append(("listed", caller, shows_settings))
        return [{"id": "1", "name": "m"}]

    async def form(self, caller: Caller, model_id: str, *, shows_connector: bool) -> Mapping[str, Any]:
        self.asked.append(("form", caller, model_id, shows_connector))
        return {"id": model_id}

    def blueprints(self) -> Sequence[Mapping[str, Any]]:
        return [{"name": "b"}]

    async def create(self, caller: Caller, blueprint: str, new: NewModel) -> Mapping[str, Any]:
        self.asked.append(("create", caller, blueprint, new))
        return {"model_id": "1", "connector_id": "2"}

    async def delete(self, caller: Caller, model_id: str, *, with_connector: bool) -> Mapping[str, Any]:
        self.asked.append(("delete", caller, model_id, with_connector))
        return {"model_id": model_id}

    async def current(self, caller: Caller) -> Mapping[str, Any]:
        self.asked.append(("current", caller))
        if self.error is not None:
            raise self.error
        return FIGURES


def playground_application(
    playground: RecordingPlayground,
    gate: Gate,
    in_flight: InFlightResponses | None = None,
    *,
    is_on: bool = True,
    converses: bool = True,
) -> Starlette:
    responses = InFlightResponses(LIMITS) if in_flight is None else in_flight
    return rest_application(
        playground_routes(
            cast(Any, playground), cast(Any, playground), responses, gate, "1.2.3", is_on=is_on, converses=converses
        ),
        Paths(("/_ui",)),
    )
