"""grpc.health.v1: whether the server is ready, kept up to date for those who watch it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from grpc_health.v1.health import aio
from grpc_health.v1.health_pb2 import HealthCheckResponse

from opensearch_ml_stream.plugin.background_task import running_beside
from opensearch_ml_stream.rest_handlers.routes.health_and_metrics import ping_error

LOOK_SECONDS = 5.0

Ready = Callable[[], Awaitable[bool]]


def readiness(ping: Callable[[], Awaitable[None]]) -> Ready:
    """Return what tells whether the store responds, as `/_health/ready` does."""

    async def is_ready() -> bool:
        return await ping_error(ping) is None

    return is_ready


@asynccontextmanager
async def reporting_health(
    servicer: aio.HealthServicer, services: tuple[str, ...], ready: Ready
) -> AsyncIterator[None]:
    """Tell whether the services are ready, for as long as the block runs."""

    async def report() -> None:
        status = HealthCheckResponse.SERVING if await ready() else HealthCheckResponse.NOT_SERVING
        for service in services:
            await servicer.set(service, status)

    async def watch() -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await report()

    await report()
    async with running_beside(watch()):
        yield
