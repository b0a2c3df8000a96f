"""The management use cases: what the API does with connectors, models, model groups and tasks in the store."""

from dataclasses import dataclass

from opensearch_ml_stream.plugin.clock import Clock
from opensearch_ml_stream.plugin.credentials.cipher import Cipher
from opensearch_ml_stream.plugin.registry.configuration.configs import Configs
from opensearch_ml_stream.plugin.registry.configuration.controllers import Controllers
from opensearch_ml_stream.plugin.registry.connectors import Connectors
from opensearch_ml_stream.plugin.registry.model_deployment import ModelDeployment
from opensearch_ml_stream.plugin.registry.model_groups import ModelGroups
from opensearch_ml_stream.plugin.registry.models import Models
from opensearch_ml_stream.plugin.registry.tasks import BatchJobs, Tasks
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
) -> Registry:
    """Wire up the use cases. Without `batch`, tasks of batch jobs are shown as stored."""
    groups = ModelGroups(store, clock)
    return Registry(
        connectors=Connectors(store, cipher, live_settings, clock, deployment.states),
        models=Models(store, cipher, live_settings, clock, groups, deployment),
        model_groups=groups,
        tasks=Tasks(store, batch),
        controllers=Controllers(store, clock),
        configs=Configs(store),
    )
