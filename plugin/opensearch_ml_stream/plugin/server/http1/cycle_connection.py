"""What a request and its response use of the connection that they are on."""

import asyncio
from typing import Protocol

from opensearch_ml_stream.plugin.server.http1.flow_control import FlowControl
from opensearch_ml_stream.plugin.server.http1.refusals import Headers


class CycleConnection(Protocol):
    """The connection, as a RequestCycle sees it."""

    transport: asyncio.Transport
    flow: FlowControl
    whole_by: float  # the time by which the request that is being received must be whole

    def wait_for_body(self) -> None:
        """Give the next part of the request's body its time."""
        ...

    def response_headers(self) -> Headers:
        """Return the headers of every response."""
        ...

    def default_lines(self) -> bytes:
        """Return the same headers as the lines of a head."""
        ...

    def response_ended(self) -> None:
        """Go on with what comes after the response that is being sent."""
        ...
