"""The config use case: show a document of the index with ML Commons' configuration.

The same index holds the master key, so only the fields that ML Commons itself shows of a config are shown.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest, NotFound
from opensearch_ml_stream.plugin.registry.stored_documents import Json, existing
from opensearch_ml_stream.plugin.store import Index, Store
from opensearch_ml_stream.rest_handlers.callers import Caller

_MASTER_KEY = "master_key"  # the id, or with tenants how it begins
_FIELDS = ("type", "config_type", "create_time", "last_update_time", "last_updated_time")
_CONFIGURATIONS = ("configuration", "ml_configuration")
_AGENT = "agent_id"  # all that a configuration of ML Commons has


@dataclass(frozen=True, slots=True)
class Configs:
    """The config use case, over the store."""

    store: Store

    async def get(self, caller: Caller, config_id: str) -> Json:
        """Return the config; NotFound without it, InvalidRequest for the master key."""
        if config_id.startswith(_MASTER_KEY):
            raise InvalidRequest("You are not allowed to access this config doc")
        missing = NotFound(f"Failed to find config with the provided config id: {config_id}")
        source = (await existing(self.store, Index.CONFIG, config_id, missing)).source
        caller.check_tenant(source)
        view: dict[str, Any] = {name: source[name] for name in _FIELDS if isinstance(source.get(name), str | int)}
        for name in _CONFIGURATIONS:
            if isinstance(configuration := source.get(name), Mapping):
                agent = configuration.get(_AGENT)
                view[name] = {_AGENT: agent} if isinstance(agent, str) else {}
        return view
