"""Routes of all resources: create, get, update, delete and search what is stored."""

from collections.abc import Mapping
from types import MappingProxyType

from starlette.routing import Route

from opensearch_ml_stream.rest_handlers.resource_endpoint import Entry
from opensearch_ml_stream.rest_handlers.routes.configuration.configs import config_routes
from opensearch_ml_stream.rest_handlers.routes.configuration.controllers import controller_routes
from opensearch_ml_stream.rest_handlers.routes.connectors import connector_routes
from opensearch_ml_stream.rest_handlers.routes.model_groups import model_group_routes
from opensearch_ml_stream.rest_handlers.routes.models import model_routes
from opensearch_ml_stream.rest_handlers.routes.tasks import task_routes
from opensearch_ml_stream.rest_handlers.service_protocols import ManagementServices

NO_OPTIONS: Mapping[str, type] = MappingProxyType({})


def management_routes(
    services: ManagementServices, entry: Entry, model_options: Mapping[str, type] = NO_OPTIONS
) -> list[Route]:
    """Return the routes in the order in which they must be tried: a name before an id.

    `model_options` are the members of a model's `_sidecar` that extensions add.
    """
    return [
        *connector_routes(services.connectors, entry),
        *model_routes(services.models, entry, model_options),
        *model_group_routes(services.model_groups, entry),
        *task_routes(services.tasks, entry),
        *controller_routes(services.controllers, entry),
        *config_routes(services.configs, entry),
    ]
