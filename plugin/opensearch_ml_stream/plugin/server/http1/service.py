"""What all connections of a worker share."""

from collections.abc import Callable
from dataclasses import dataclass, field

from starlette.types import ASGIApp
from uvicorn.server import ServerState

from opensearch_ml_stream.plugin.logs.request_log import RequestLog
from opensearch_ml_stream.plugin.server.http1.limits import ConnectionLimits
from opensearch_ml_stream.rest_handlers.http.body_budget import BodyBudget


@dataclass(frozen=True, slots=True)
class Service:
    """The application and its limits; `state` holds the connections and the tasks, `warn` logs what clients cause."""

    app: ASGIApp
    state: ServerState
    limits: ConnectionLimits
    bodies: BodyBudget
    warn: Callable[[str], None]
    log: RequestLog = field(default_factory=RequestLog)
