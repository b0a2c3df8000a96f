"""Who calls in the tests of access, and a registry that controls it."""

from typing import Any

from opensearch_ml_stream.plugin.registry import Registry
from opensearch_ml_stream.plugin.registry.tasks import BatchJobs
from opensearch_ml_stream.plugin.store import Store
from opensearch_ml_stream.rest_handlers.callers import Caller
from tests.registry.registry_setup import registry_on

ANN = Caller("ann", frozenset({"team-a", "all-teams"}), frozenset({"ml_full_access"}))
BOB = Caller("bob", frozenset({"team-b"}))
CAT = Caller("cat", frozenset({"team-a"}))
ADMIN = Caller("admin", frozenset({"admin"}), frozenset({"all_access"}), is_admin=True)

OWNED_BY_ANN = {
    "name": "ann",
    "backend_roles": ["all-teams", "team-a"],
    "roles": ["ml_full_access"],
    "custom_attribute_names": [],
}
NO_PRIVILEGE = "User doesn't have privilege to perform this operation on this model"


def controlled_registry(store: Store, batch: BatchJobs | None = None, **settings: Any) -> Registry:
    """A registry with both switches on."""
    on = {"connector_access_control_enabled": True, "model_access_control_enabled": True}
    return registry_on(store, batch, **{**on, **settings})
