"""The management use cases: what the API does with connectors, models, model groups and tasks in the store."""

from dataclasses import dataclass

from opensearch_ml_stream.connectors.model_options import NO_OPTIONS, ModelOptions
from opensearch_ml_stream.plugin.clock import Clock
from opensearch_ml_stream.plugin.credentials.cipher import Cipher
from opensearch_ml_stream.plugin.registry.configs import Configs
from opensearch_ml_stream.plugin.registry.connectors import Connectors
from opensearch_ml_stream.plugin.registry.controllers import Controllers
from opensearch_ml_stream.plugin.registry.document_access import ModelAccess, VisibleDocuments
from opensearch_ml_stream.plugin.registry.model_connectors import ModelConnectors
from opensearch_ml_stream.plugin.registry.model_deployment import ModelDeployment
from opensearch_ml_stream.plugin.registry.model_groups import ModelGroups
from opensearch_ml_stream.plugin.registry.models import Models
from opensearch_ml_stream.plugin.registry.tasks import BatchJobs, Tasks
from opensearch_ml_stream.plugin.security.access_control import connector_access
from opensearch_ml_stream.plugin.settings import LiveSettings
from opensearch_ml_stream.plugin.store import Store


@dataclass(frozen=True, slots=True)
class Registry:
    """All management use cases; fits `rest_handlers.service_protocols.ManagementServices`."""

    connectors: Connectors
    models: Models
    model_groups: ModelGroups
    tasks: Tasks
    controllers: Controllers
    configs: Configs


def build_registry(
    store: Store,
    cipher: Cipher,
    live_settings: LiveSettings,
    clock: Clock,
    deployment: ModelDeployment,
    batch: BatchJobs | None = None,
    model_options: ModelOptions = NO_OPTIONS,
) -> Registry:
    """Wire up the use cases. Without `batch`, tasks of batch jobs are shown as stored."""
    of_connectors = connector_access(live_settings)
    connectors = ModelConnectors(store, cipher, live_settings, of_connectors)
    access = ModelAccess.of(store, live_settings)
    visible = VisibleDocuments.of(store, live_settings)
    groups = ModelGroups(store, clock, access.groups, visible)
    return Registry(
        connectors=Connectors(store, cipher, live_settings, clock, deployment.states, of_connectors, visible),
        models=Models(store, live_settings, clock, groups, deployment, access, connectors, visible, model_options),
        model_groups=groups,
        tasks=Tasks(store, access, visible, batch),
        controllers=Controllers(store, clock, access),
        configs=Configs(store),
    )
