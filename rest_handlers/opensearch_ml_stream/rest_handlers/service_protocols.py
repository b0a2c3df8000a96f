"""Protocols of the use cases behind the management routes, which `plugin` implements.

Bodies and responses are JSON objects as the API of ML Commons has them, and no response holds a credential. Errors
are MLStreamErrors: of every method, InvalidRequest for a body that it does not take, NotFound for an id that it does
not know, and Unavailable while the store does not respond; other errors are listed with the method. For a document
that the `caller` may not see or use it is Forbidden, or InvalidRequest where ML Commons has it so.
`dashboards` says that the client is OpenSearch Dashboards, which alone gets `ui_metadata`.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from opensearch_ml_stream.rest_handlers.callers import Caller

Json = Mapping[str, Any]


class Connectors(Protocol):
    """Connectors: how a provider is called."""

    async def create(self, caller: Caller, body: Json) -> Json:
        """Store a connector and return `{"connector_id"}`; with `dry_run` in the body, only check it."""
        ...

    async def get(self, caller: Caller, connector_id: str, *, dashboards: bool) -> Json:
        """Return the connector."""
        ...

    async def update(self, caller: Caller, connector_id: str, body: Json) -> Json:
        """Change the members in `body`; return OpenSearch's index response.

        InvalidRequest while a deployed model uses the connector.
        """
        ...

    async def delete(self, caller: Caller, connector_id: str) -> Json:
        """Delete the connector, if there is one; return OpenSearch's delete response. Conflict if a model uses it."""
        ...

    async def search(self, caller: Caller, body: Json, *, dashboards: bool) -> Json:
        """Search connectors; return OpenSearch's search response."""
        ...


class Models(Protocol):
    """Models, and their deployment."""

    async def register(self, caller: Caller, body: Json, *, deploy: bool) -> Json:
        """Store a model, deploy it if `deploy`, and return `{"task_id", "status", "model_id"}`."""
        ...

    async def get(self, caller: Caller, model_id: str, *, dashboards: bool) -> Json:
        """Return the model."""
        ...

    async def update(self, caller: Caller, model_id: str, body: Json) -> Json:
        """Change the members in `body`; return OpenSearch's index response.

        Conflict while the model deploys, Forbidden if it is not a remote one.
        """
        ...

    async def delete(self, caller: Caller, model_id: str) -> Json:
        """Delete the model; return OpenSearch's delete response. InvalidRequest while it is deployed."""
        ...

    async def search(self, caller: Caller, body: Json, *, dashboards: bool) -> Json:
        """Search models; return OpenSearch's search response."""
        ...

    async def deploy(self, caller: Caller, model_id: str, body: Json) -> Json:
        """Deploy the model and return `{"task_id", "task_type", "status"}`."""
        ...

    async def undeploy(self, caller: Caller, model_id: str, body: Json) -> Json:
        """Undeploy the model, or the body's `model_ids`, and return `{node_id: {"stats": {model_id: outcome}}}`."""
        ...

    async def undeploy_many(self, caller: Caller, body: Json) -> Json:
        """Undeploy the models in `model_ids` of the body; return as `undeploy` does, also for ids of no model."""
        ...


class ModelGroups(Protocol):
    """Model groups: models of one name, numbered by version."""

    async def register(self, caller: Caller, body: Json) -> Json:
        """Store a group and return `{"model_group_id", "status"}`. InvalidRequest if the name is taken."""
        ...

    async def get(self, caller: Caller, group_id: str) -> Json:
        """Return the group."""
        ...

    async def update(self, caller: Caller, group_id: str, body: Json) -> Json:
        """Change name or description and return `{"status"}`. InvalidRequest if the name is taken."""
        ...

    async def delete(self, caller: Caller, group_id: str) -> Json:
        """Delete the group; return OpenSearch's delete response. Conflict while a model is in it."""
        ...

    async def search(self, caller: Caller, body: Json, *, dashboards: bool) -> Json:
        """Search groups; return OpenSearch's search response."""
        ...


class Tasks(Protocol):
    """Tasks: registrations, deployments and batch jobs, with their state."""

    async def get(self, caller: Caller, task_id: str) -> Json:
        """Return the task; the state of an unfinished batch job is read from its provider first."""
        ...

    async def delete(self, caller: Caller, task_id: str) -> Json:
        """Delete the task; return OpenSearch's delete response. InvalidRequest while it runs."""
        ...

    async def cancel(self, caller: Caller, task_id: str) -> Json:
        """Cancel the batch job of the task and return `{"status"}`. InvalidRequest if it has none."""
        ...

    async def search(self, caller: Caller, body: Json, *, dashboards: bool) -> Json:
        """Search tasks; return OpenSearch's search response."""
        ...


class Controllers(Protocol):
    """Controllers: limits of how often each user may call a model."""

    async def create(self, caller: Caller, model_id: str, body: Json) -> Json:
        """Store the model's controller, in place of one that there is; return `{"model_id", "status"}`."""
        ...

    async def get(self, caller: Caller, model_id: str) -> Json:
        """Return the model's controller."""
        ...

    async def update(self, caller: Caller, model_id: str, body: Json) -> Json:
        """Change the limits of users; return OpenSearch's index response. Conflict if there is no controller."""
        ...

    async def delete(self, caller: Caller, model_id: str) -> Json:
        """Delete the model's controller; return OpenSearch's delete response."""
        ...


class Configs(Protocol):
    """Configs: what configures the cluster's ML Commons."""

    async def get(self, caller: Caller, config_id: str) -> Json:
        """Return the config. InvalidRequest for the master key."""
        ...


class ManagementServices(Protocol):
    """The services of all management routes."""

    @property
    def connectors(self) -> Connectors:
        """The service behind `/connectors`."""
        ...

    @property
    def models(self) -> Models:
        """The service behind `/models`."""
        ...

    @property
    def model_groups(self) -> ModelGroups:
        """The service behind `/model_groups`."""
        ...

    @property
    def tasks(self) -> Tasks:
        """The service behind `/tasks`."""
        ...

    @property
    def controllers(self) -> Controllers:
        """The service behind `/controllers`."""
        ...

    @property
    def configs(self) -> Configs:
        """The service behind `/config`."""
        ...
