"""Open the front door: requests without a route here are forwarded to the store's cluster."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.extensions.front_door.cluster_nodes import ClusterNodes
from opensearch_ml_stream.extensions.front_door.cluster_requests import ClusterRequests, open_door
from opensearch_ml_stream.extensions.front_door.local_models import LocalModels, ModelsOfCluster, StoredModelKinds
from opensearch_ml_stream.plugin.extension import BEFORE_LOCAL_ROUTES, Contribution, Core, Handler
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.rest_handlers.resource_endpoint import ParsedRequest


def check_store(settings: Settings) -> None:
    """Raise InvalidRequest if the store is no cluster that requests could go to."""
    if settings.store.startswith("sqlite:"):
        raise InvalidRequest(
            "opensearch_ml_stream.pass_through is on, but the embedded store is not a cluster: "
            "name one with --store http(s)://host:port, or leave out --pass-through"
        )


@dataclass(frozen=True, slots=True)
class ClusterBehind:
    """The cluster as the server behind this one; fits `extension.OtherServer`."""

    requests: ClusterRequests
    models: ModelsOfCluster
    nodes: ClusterNodes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward a request that has no route here."""
        await self.requests(scope, receive, send)

    async def takes(self, scope: Scope, receive: Receive, send: Send, model_id: str) -> bool:
        """Forward a prediction of a model that runs in the cluster; return whether it does."""
        return await self.models.takes(scope, receive, send, model_id)

    async def add_to(self, own: Mapping[str, Any], request: ParsedRequest) -> Mapping[str, Any]:
        """Merge in what ML Commons on the cluster responds."""
        return await self.nodes.add_to(own, request)


@asynccontextmanager
async def open_front_door(core: Core) -> AsyncIterator[Contribution]:
    """Contribute the cluster as the server behind this one, and the handler that finds its models."""
    async with open_door(core.settings) as relay:
        kinds = StoredModelKinds(core.store)
        cluster = ClusterRequests(relay, core.gate)

        def before(router: ASGIApp) -> ASGIApp:
            return LocalModels(kinds, cluster, router, core.gate, core.in_flight.bodies)

        behind = ClusterBehind(cluster, ModelsOfCluster(kinds, cluster, core.gate), ClusterNodes(cluster))
        yield Contribution(handlers=(Handler(BEFORE_LOCAL_ROUTES, before),), other_server=behind, drain=cluster.drain)
