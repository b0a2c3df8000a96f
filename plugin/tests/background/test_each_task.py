"""Each background task of a worker is broken once, and is told of, and goes on."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from opensearch_ml_stream.connectors.model_options import CallLimits
from opensearch_ml_stream.plugin.background_tasks import BackgroundTasks
from opensearch_ml_stream.plugin.grpc_port import health_service
from opensearch_ml_stream.plugin.grpc_port.health_service import Health
from opensearch_ml_stream.plugin.grpc_port.server import RestartingServer
from opensearch_ml_stream.plugin.limits import replica_leases, shared_spending, stream_caps
from opensearch_ml_stream.plugin.limits.budgets import open_budgets
from opensearch_ml_stream.plugin.limits.stream_caps import OpenStreams, StreamCounts
from opensearch_ml_stream.plugin.metrics import Metrics
from opensearch_ml_stream.plugin.registry import cleanup
from opensearch_ml_stream.plugin.security import open_gate, own_gate
from opensearch_ml_stream.plugin.server import port_certificate
from opensearch_ml_stream.plugin.server.port_certificate import ReloadingCertificate, read_certificate_files
from opensearch_ml_stream.plugin.server.processes import Heartbeats
from opensearch_ml_stream.plugin.settings import LiveSettings, Settings, dynamic
from opensearch_ml_stream.plugin.store.sqlite_store import SQLiteStore
from tests.background.broken_task import BrokenTask, Defect, until
from tests.registry.registry_setup import StoreInCluster
from tests.upstream.certificates import issue


@pytest.fixture
async def store() -> AsyncIterator[SQLiteStore]:
    store = StoreInCluster(":memory:")
    yield store
    await store.close()


Opening = Callable[[SQLiteStore, Path, BackgroundTasks], AbstractAsyncContextManager[Any]]


@asynccontextmanager
async def beating(store: SQLiteStore, folder: Path, background: BackgroundTasks) -> AsyncIterator[None]:
    heartbeats = Heartbeats(1)
    async with background.running("heartbeat", lambda: heartbeats.beat(0)):
        yield


@asynccontextmanager
async def watching_certificate(store: SQLiteStore, folder: Path, background: BackgroundTasks) -> AsyncIterator[None]:
    own = issue("ml.example", issue("authority", authority=True))
    settings = Settings(tls_certificate=str(folder / "cert.pem"), tls_key=str(folder / "key.pem"))
    (folder / "cert.pem").write_text(own.pem)
    (folder / "key.pem").write_text(own.key_pem())
    at_start = read_certificate_files(settings)
    assert at_start is not None
    async with ReloadingCertificate(settings, at_start).watching(lambda current: None, background):
        yield


class Responds:
    """Whether the store responds."""

    async def __call__(self) -> bool:
        return self.responds()

    def responds(self) -> bool:
        return True


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes on each second or so does so at once."""
    for module, name in (
        (dynamic, "POLL_SECONDS"),
        (shared_spending, "EXCHANGE_SECONDS"),
        (replica_leases, "RENEW_SECONDS"),
        (open_gate, "WATCH_SECONDS"),
        (port_certificate, "LOOK_SECONDS"),
        (health_service, "LOOK_SECONDS"),
        (stream_caps, "LOOK_SECONDS"),
    ):
        monkeypatch.setattr(module, name, 0.002)


GATE = Settings(security="auto", host="127.0.0.1")
TASKS: list[Any] = [
    pytest.param(
        "settings", (dynamic, "refresh_settings", 1),
        lambda store, folder, background: dynamic.watching_settings(store, LiveSettings(Settings()), background, 0.002),
        marks=pytest.mark.breaks("settings"),
    ),
    pytest.param(
        "orphans", (cleanup, "delete_orphans", 1),
        lambda store, folder, background: cleanup.deleting_orphans(store, background, 0.002),
        marks=pytest.mark.breaks("orphans"),
    ),
    pytest.param(
        "accounts", (own_gate.OwnGate, "look", 2),
        lambda store, folder, background: open_gate.open_gate(GATE, store, folder, lambda: 0, background),
        marks=pytest.mark.breaks("accounts"),
    ),
    pytest.param(
        "replicas", (replica_leases.Lease, "renew", 1),
        lambda store, folder, background: replica_leases.counting_replicas(store, folder, lambda: 1, background),
        marks=pytest.mark.breaks("replicas"),
    ),
    pytest.param(
        "budgets", (shared_spending.SharedSpending, "exchange", 1),
        lambda store, folder, background: open_budgets(folder, store, print, lambda: 1, background),
        marks=pytest.mark.breaks("budgets"),
    ),
    pytest.param(
        "port certificate", (ReloadingCertificate, "reload", 1), watching_certificate,
        marks=pytest.mark.breaks("port certificate"),
    ),
    pytest.param(
        "gRPC health", (Responds, "responds", 2),
        lambda store, folder, background: Health(("a.Service",), Responds()).looking(background),
        marks=pytest.mark.breaks("gRPC health"),
    ),
    pytest.param("heartbeat", (Heartbeats, "beat", 1), beating, marks=pytest.mark.breaks("heartbeat")),
]  # fmt: skip


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize(("name", "broken_at", "opening"), TASKS)
async def test_a_task_that_fails_is_told_of_at_once_and_goes_on(
    broken: BrokenTask,
    store: SQLiteStore,
    tmp_path: Path,
    name: str,
    broken_at: tuple[Any, str, int],
    opening: Opening,
) -> None:
    owner, attribute, at = broken_at
    broken.breaks(owner, attribute, at)
    async with opening(store, tmp_path, broken.background):
        await broken.recovers(name)


@pytest.mark.usefixtures("fast")
@pytest.mark.breaks("stream queue")
async def test_who_waits_for_a_place_gets_it_though_the_queue_has_failed(broken: BrokenTask, tmp_path: Path) -> None:
    with closing(StreamCounts(tmp_path, 2)) as counts, closing(StreamCounts(tmp_path, 2)) as of_other_worker:
        live, one_stream = LiveSettings(Settings(stream_queue_seconds=60)), CallLimits(max_streams=1)
        here, there = (OpenStreams(each, live, Metrics(), broken.background) for each in (counts, of_other_worker))
        broken.breaks(counts, "acquire", at=2)

        async def wait() -> None:
            async with here.place("m", one_stream, "u"):
                pass

        async with there.place("m", one_stream, "u"):
            waiting = asyncio.create_task(wait())
            await broken.recovers("stream queue")
            assert not waiting.done()
        await asyncio.wait_for(waiting, 20)


class FakeServer:
    """A gRPC server until it has `ended`, or its loop has `failure`."""

    ended = False
    failure: BaseException | None = None

    async def wait_for_termination(self, seconds: float) -> bool:
        await asyncio.sleep(0.001)
        if self.failure is not None:
            raise self.failure
        return not self.ended

    async def stop(self, seconds: float) -> None:
        self.ended = True


class FakeServers:
    def __init__(self) -> None:
        self.started: list[FakeServer] = []

    async def start(self) -> FakeServer:
        self.started.append(FakeServer())
        return self.started[-1]


@pytest.mark.breaks("gRPC server")
async def test_a_grpc_server_that_cannot_be_replaced_now_is_replaced_later(broken: BrokenTask) -> None:
    servers = FakeServers()
    broken.breaks(servers, "start", at=2)
    async with RestartingServer(lambda: servers.start(), broken.background):
        servers.started[0].ended = True
        await broken.recovers("gRPC server")
        assert [server.ended for server in servers.started] == [True, False]


@pytest.mark.parametrize("failure", [asyncio.CancelledError, SystemExit])
async def test_a_grpc_server_is_replaced_whatever_has_ended_it(failure: type[BaseException]) -> None:
    servers = FakeServers()
    async with RestartingServer(servers.start, BackgroundTasks()):
        servers.started[0].failure = failure()
        await until(lambda: len(servers.started) == 2)


@pytest.mark.breaks("ended gRPC server")
async def test_the_calls_of_an_ended_grpc_server_are_waited_for_though_that_has_failed(broken: BrokenTask) -> None:
    servers = FakeServers()
    broken.breaks(FakeServer, "stop")
    async with RestartingServer(servers.start, broken.background):
        servers.started[0].ended = True
        await broken.recovers("ended gRPC server")


@pytest.mark.breaks("event loop")
async def test_what_fails_in_a_callback_is_counted(broken: BrokenTask, caplog: pytest.LogCaptureFixture) -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(broken.background.loop_failed)

    def callback() -> None:
        raise Defect("a secret prompt")

    loop.call_soon(callback)
    await until(lambda: caplog.messages)
    assert broken.background.failures.counts() == {"event loop": 1}
    loop.call_exception_handler({"message": "a client is gone", "exception": ConnectionResetError()})
    assert broken.background.failures.counts() == {"event loop": 1}
