"""Protocol of what adds the figures of another server's nodes to this server's."""

from collections.abc import Mapping
from typing import Any, Protocol

from opensearch_ml_stream.rest_handlers.resource_endpoint import ParsedRequest


class OtherNodes(Protocol):
    """The nodes of a server behind this one."""

    async def add_to(self, own: Mapping[str, Any], request: ParsedRequest) -> Mapping[str, Any]:
        """Return this server's response with the other's merged in: of what both have this one's counts."""
        ...
