"""Protocols of the use cases behind the page's models: what is shown of one, what is changed, what it may call.

Errors are MLStreamErrors, as those of `service_protocols`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from opensearch_ml_stream.rest_handlers.callers import Caller

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ModelChange:
    """What is to be changed of a model; None stays as it is.

    Of `parameters`, `credential` and `settings` only the members that are given change. A member of `settings` that is
    null is removed.
    """

    name: str | None = None
    description: str | None = None
    parameters: Json | None = None
    credential: Mapping[str, str] | None = None
    settings: Json | None = None

    @property
    def of_model(self) -> dict[str, Any]:
        """The body of an update of the model."""
        given = {"name": self.name, "description": self.description, "_sidecar": self.settings}
        return {name: value for name, value in given.items() if value is not None}

    @property
    def of_connector(self) -> dict[str, Any]:
        """The body of an update of its connector."""
        given = {"parameters": self.parameters, "credential": self.credential}
        return {name: value for name, value in given.items() if value}


class ModelChanges(Protocol):
    """A model as its editor shows it, and its changes."""

    async def shown(self, caller: Caller, model_id: str, *, shows_connector: bool) -> Json:
        """Return `{"id", "name", "description", "settings", "connector"}`; never what a credential is."""
        ...

    async def change(self, caller: Caller, model_id: str, change: ModelChange) -> Json:
        """Change a model, and its connector while it is undeployed; return `{"model_id"}`."""
        ...


class AllowedServers(Protocol):
    """The servers that connectors may call."""

    async def allow(self, url: str) -> Json:
        """Allow the server of a URL; return `{"origin", "is_private", "is_new"}`."""
        ...
