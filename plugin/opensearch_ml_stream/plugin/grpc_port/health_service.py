"""`grpc.health.v1.Health`: whether the server is ready, for anyone, like `/_health/ready`.

grpcio's own servicer keeps the request of each watch while that lasts, and anyone may send one as large as a message
may be.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest, MLStreamError, NotFound, Throttled
from opensearch_ml_stream.plugin.background_tasks import BackgroundTasks
from opensearch_ml_stream.plugin.grpc_port.calls import Call, CallHandlers, Handler, Ready
from opensearch_ml_stream.plugin.grpc_port.messages import (
    HealthCheckRequest,
    HealthCheckResponse,
    HealthListResponse,
    parse,
)
from opensearch_ml_stream.rest_handlers.callers import Caller

HEALTH_SERVICE = "grpc.health.v1.Health"
READY_SECONDS = 1.5
LOOK_SECONDS = 5.0
MAX_WATCHES = 1_000  # of all callers, who need not log in, so that there is room for other calls


def readiness(ping: Callable[[], Awaitable[None]]) -> Ready:
    """Return a function that returns whether the store responds."""

    async def is_ready() -> bool:
        try:
            async with asyncio.timeout(READY_SECONDS):
                await ping()
        except (MLStreamError, TimeoutError):
            return False
        return True

    return is_ready


class Health:
    """The health service. All `services` are ready, or none is, as of at most LOOK_SECONDS ago."""

    def __init__(self, services: Collection[str], ready: Ready) -> None:
        self._services = ("", *services)
        self._ready = ready
        self._is_ready = False
        self._changed = asyncio.Event()
        self._watches = 0

    @asynccontextmanager
    async def looking(self, background: BackgroundTasks) -> AsyncIterator[None]:
        """Check whether they are ready, now and every LOOK_SECONDS while the block runs."""

        async def look() -> float:
            is_ready = await self._ready()
            if is_ready != self._is_ready:
                self._is_ready = is_ready
                self._changed.set()
                self._changed = asyncio.Event()
            return LOOK_SECONDS

        async with background.running("gRPC health", look, after=await look()):
            yield

    def handlers(self, calls: CallHandlers) -> dict[str, Handler]:
        """Return the handlers of all methods by name."""
        path = f"/{HEALTH_SERVICE}/"
        return {
            "Check": calls.unary(f"{path}Check", self._check, is_open=True),
            "List": calls.unary(f"{path}List", self._list, is_open=True),
            "Watch": calls.stream(f"{path}Watch", self._watch, is_open=True),
        }

    async def _check(self, call: Call, caller: Caller, request: bytes) -> bytes:
        if not self._is_known(request):
            raise NotFound("There is no such service")
        return _message(self._status())

    async def _list(self, call: Call, caller: Caller, request: bytes) -> bytes:
        return _message(HealthListResponse(statuses=dict.fromkeys(self._services, self._status())))

    async def _watch(self, call: Call, caller: Caller) -> None:
        """Send the status now and whenever it changes, until the client or the server ends the call."""
        request = await call.first_message()
        if request is None:
            raise InvalidRequest("The call has no request: it must send a message, which may be empty")
        is_known = self._is_known(request)
        del request
        if self._watches >= MAX_WATCHES:
            raise Throttled("Too many watches of this server's health; call Check instead", retry_after="10")
        self._watches += 1
        try:
            call.wait()
            while True:
                changed = self._changed
                status = self._status() if is_known else HealthCheckResponse(status="SERVICE_UNKNOWN")
                await call.write(_message(status))
                await changed.wait()
        finally:
            self._watches -= 1

    def _is_known(self, request: bytes) -> bool:
        return parse(HealthCheckRequest, request).service in self._services

    def _status(self) -> Any:
        return HealthCheckResponse(status="SERVING" if self._is_ready else "NOT_SERVING")


def _message(message: Any) -> bytes:
    data: bytes = message.SerializeToString()
    return data
