"""Protocols of the use cases behind the playground; the caller of this room implements them.

Bodies and results are JSON objects. Errors are MLStreamErrors, as those of `service_protocols`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from opensearch_ml_stream.rest_handlers.callers import Caller

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class NewModel:
    """A model to make from a blueprint; without a name it gets the blueprint's."""

    name: str | None = None
    credential: Mapping[str, str] = field(default_factory=dict)
    parameters: Json = field(default_factory=dict)


class PlaygroundModels(Protocol):
    """Models as the playground shows and makes them."""

    async def listed(self, caller: Caller, *, shows_settings: bool) -> Sequence[Json]:
        """Return the models that the caller may see, sorted by name; limits and access only if `shows_settings`."""
        ...

    async def form(self, caller: Caller, model_id: str, *, shows_connector: bool) -> Json:
        """Return what a form for a call of the model asks; the connector's values only if `shows_connector`."""
        ...

    def blueprints(self) -> Sequence[Json]:
        """Return the blueprints that are installed, sorted by name."""
        ...

    async def create(self, caller: Caller, blueprint: str, new: NewModel) -> Json:
        """Make a connector and a deployed model, both or neither; return `{"model_id", "connector_id"}`.

        NotFound for a blueprint that there is not, InvalidRequest for a value that it does not take or lacks.
        """
        ...

    async def delete(self, caller: Caller, model_id: str, *, with_connector: bool) -> Json:
        """Undeploy and delete the model; return `{"model_id", "deleted_connector_id"}`.

        With `with_connector` its connector too, if the playground made it and nothing else uses it.
        """
        ...
