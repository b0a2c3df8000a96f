"""Health over gRPC: what those who watch it are told. The calls are stand-ins, without a server."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse

from opensearch_ml_stream.connectors.errors import InvalidRequest, NotFound, Throttled
from opensearch_ml_stream.plugin.background_tasks import BackgroundTasks
from opensearch_ml_stream.plugin.grpc_port import health_service
from opensearch_ml_stream.plugin.grpc_port.health_service import Health
from opensearch_ml_stream.plugin.grpc_port.messages import HealthListResponse
from opensearch_ml_stream.rest_handlers.callers import ANYONE


class Handlers:
    """Stands for CallHandlers: gives the works of methods as they are."""

    def unary(self, path: str, work: Callable[..., Awaitable[bytes]], *, is_open: bool) -> Any:
        assert is_open
        return work

    stream = unary


class WatchingClient:
    """Stands for the call of a client that watches a service."""

    def __init__(self, request: bytes | None = b"") -> None:
        self.request = request
        self.waits = False
        self.told = asyncio.Queue[str]()

    async def first_message(self) -> bytes | None:
        return self.request

    def wait(self) -> None:
        self.waits = True

    async def write(self, message: bytes) -> None:
        self.told.put_nowait(name_of(HealthCheckResponse.FromString(message).status))


class Store:
    def __init__(self) -> None:
        self.is_up = True

    async def responds(self) -> bool:
        return self.is_up


def name_of(status: int) -> str:
    return str(HealthCheckResponse.ServingStatus.Name(status))


def asked(service: str) -> bytes:
    return bytes(HealthCheckRequest(service=service).SerializeToString())


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
async def methods(store: Store, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Any]:
    monkeypatch.setattr(health_service, "LOOK_SECONDS", 0.01)
    health = Health(("a.Service",), store.responds)
    async with health.looking(BackgroundTasks()):
        yield health.handlers(Handlers())  # type: ignore[arg-type]  # it gives works, not grpc's handlers


@pytest.mark.parametrize("service", ["", "a.Service"])
async def test_a_service_is_ready_while_the_store_responds(methods: Any, service: str) -> None:
    response = HealthCheckResponse.FromString(await methods["Check"](None, ANYONE, asked(service)))
    assert name_of(response.status) == "SERVING"


async def test_the_list_names_the_server_and_its_services(methods: Any) -> None:
    listed = HealthListResponse.FromString(await methods["List"](None, ANYONE, b""))
    assert {name: name_of(one.status) for name, one in listed.statuses.items()} == {
        "": "SERVING",
        "a.Service": "SERVING",
    }


async def test_a_service_that_is_not_there_is_not_found(methods: Any) -> None:
    with pytest.raises(NotFound):
        await methods["Check"](None, ANYONE, asked("b.Service"))


async def test_who_watches_is_told_of_each_change(methods: Any, store: Store) -> None:
    client = WatchingClient(asked("a.Service"))
    watch = asyncio.create_task(methods["Watch"](client, ANYONE))
    assert await client.told.get() == "SERVING"
    assert client.waits  # so that a stop of the server ends it at once
    store.is_up = False
    assert await client.told.get() == "NOT_SERVING"
    store.is_up = True
    assert await client.told.get() == "SERVING"
    watch.cancel()


async def test_who_watches_a_service_that_is_not_there_is_told_so(methods: Any) -> None:
    client = WatchingClient(asked("b.Service"))
    watch = asyncio.create_task(methods["Watch"](client, ANYONE))
    assert await client.told.get() == "SERVICE_UNKNOWN"
    watch.cancel()


async def test_a_watch_of_nothing_is_refused(methods: Any) -> None:
    with pytest.raises(InvalidRequest):
        await methods["Watch"](WatchingClient(None), ANYONE)


async def test_watches_leave_room_for_other_calls(methods: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health_service, "MAX_WATCHES", 2)
    clients = [WatchingClient(), WatchingClient()]
    watches = [asyncio.create_task(methods["Watch"](client, ANYONE)) for client in clients]
    for client in clients:
        await client.told.get()
    with pytest.raises(Throttled):
        await methods["Watch"](WatchingClient(), ANYONE)
    watches[0].cancel()
    await asyncio.wait([watches[0]])
    again = asyncio.create_task(methods["Watch"](client := WatchingClient(), ANYONE))
    assert await client.told.get() == "SERVING"
    for watch in (watches[1], again):
        watch.cancel()
