"""The nodes of ML Commons on the cluster beside the sidecar, in the responses of `/profile` and `/stats`."""

import asyncio
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

import orjson

from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.extensions.front_door.cluster_requests import ClusterRequests
from opensearch_ml_stream.rest_handlers.resource_endpoint import ParsedRequest

WAIT_SECONDS = 5.0  # for nodes that do not respond; the sidecar's own figures are not held up longer

_OWN_PARAMETERS = ("view",)  # of the query; the others format the response, which is done here


class ClusterNodes:
    """Merges the cluster's response to the same request into the sidecar's.

    If ML Commons on the cluster refuses, is missing or does not respond, the sidecar's response stays as it is.
    """

    def __init__(self, cluster: ClusterRequests) -> None:
        self._cluster = cluster

    async def add_to(self, own: Mapping[str, Any], request: ParsedRequest) -> Mapping[str, Any]:
        """Return the sidecar's response with the cluster's merged in; the sidecar's values take precedence."""
        query = urlencode({name: request.query[name] for name in _OWN_PARAMETERS if name in request.query})
        path = quote(request.scope["path"], safe="/,") + (f"?{query}" if query else "")
        body = jsontext.dumps(request.body).encode() if request.body else b""
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                status, data = await self._cluster.fetch(request.scope, path, body)
            other = orjson.loads(data) if status == 200 else None
        except (MLStreamError, TimeoutError, orjson.JSONDecodeError):
            return own
        return merged(own, other) if isinstance(other, dict) else own


def merged(own: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two objects: nested objects are merged, lists joined; of other values that of `own` is kept."""
    both = dict(own)
    for name, value in other.items():
        if name not in both:
            both[name] = value
        elif isinstance(both[name], Mapping) and isinstance(value, Mapping):
            both[name] = merged(both[name], value)
        elif isinstance(both[name], list) and isinstance(value, list):
            both[name] = [*both[name], *(item for item in value if item not in both[name])]
    return both
