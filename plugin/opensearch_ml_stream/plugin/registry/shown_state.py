"""Queries for the state that a model is shown with: DEPLOYED if the sidecar has it deployed, else the stored one."""

from dataclasses import dataclass, field
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.registry.deployment_state_store import DEPLOYED
from opensearch_ml_stream.plugin.registry.stored_documents import Json

FIELD = "model_state"
STATES = (
    DEPLOYED, "DEPLOYING", "DEPLOY_FAILED", "LOADED", "LOADING", "LOAD_FAILED", "PARTIALLY_DEPLOYED",
    "PARTIALLY_LOADED", "REGISTERED", "REGISTERING", "TRAINED", "UNDEPLOYED", "UNLOADED", "UPLOADED", "UPLOADING",
)  # fmt: skip
"""All states that ML Commons has, in their order."""

MAX_QUERIES = 100  # by the shown state, in one search; an aggregation or a sort is one for each state
MAX_IDS = 200_000  # in all of them


@dataclass(slots=True)
class ShownState:
    """Makes queries by the shown state. `deployed` are the ids of the models that the sidecar has deployed."""

    deployed: list[str]
    _queries: int = field(default=0, init=False)

    def elsewhere(self, stored: Json) -> dict[str, Any]:
        """Return the query for what `stored` finds among the models that are shown as stored.

        InvalidRequest if one search has too many such queries.
        """
        self._queries += 1
        if self._queries > MAX_QUERIES or self._queries * len(self.deployed) > MAX_IDS:
            raise InvalidRequest(f"search: [{FIELD}] is named too often in one search")
        return {"bool": {"must": [stored], "must_not": [self._here()]}}

    def or_here(self, query: Json) -> dict[str, Any]:
        """Return the query that also finds every model that the sidecar has deployed."""
        return {"bool": {"should": [query, self._here()], "minimum_should_match": 1}}

    def is_state(self, state: str) -> dict[str, Any]:
        """Return the query for the models that are shown with this state."""
        query = self.elsewhere({"term": {FIELD: state}})
        return self.or_here(query) if state == DEPLOYED else query

    def _here(self) -> Json:
        return {"ids": {"values": self.deployed}}
