"""The management use cases: what the API does with connectors, models, model groups and tasks, over the store."""

from dataclasses import dataclass

from opensearch_ml_stream.plugin.registry.connectors import Connectors
from opensearch_ml_stream.plugin.registry.deployed_states import DeployedStates
from opensearch_ml_stream.plugin.registry.model_deployment import ModelDeployment
from opensearch_ml_stream.plugin.registry.model_groups import ModelGroups
from opensearch_ml_stream.plugin.registry.models import Models
from opensearch_ml_stream.plugin.registry.stored_documents import Cipher, Clock
from opensearch_ml_stream.plugin.registry.tasks import BatchJobs, Tasks
from opensearch_ml_stream.plugin.settings import LiveSettings
from opensearch_ml_stream.plugin.store import Store


@dataclass(frozen=True, slots=True)
class Registry:
    """All of them; fits `rest_handlers.services.ManagementServices`."""

    connectors: Connectors
    models: Models
    model_groups: ModelGroups
    tasks: Tasks
    live_settings: LiveSettings

    @property
    def max_body_size(self) -> int:
        return self.live_settings.current.max_body_size


def open_registry(
    store: Store, cipher: Cipher, live_settings: LiveSettings, clock: Clock, batch: BatchJobs | None = None
) -> Registry:
    """`clock` gives milliseconds since 1970. Without `batch`, tasks of batch jobs are shown as stored."""
    states = DeployedStates(store, clock)
    groups = ModelGroups(store, clock)
    deploying = ModelDeployment(store, cipher, live_settings, clock, states)
    return Registry(
        connectors=Connectors(store, cipher, live_settings, clock, states),
        models=Models(store, cipher, live_settings, clock, states, groups, deploying),
        model_groups=groups,
        tasks=Tasks(store, batch),
        live_settings=live_settings,
    )
