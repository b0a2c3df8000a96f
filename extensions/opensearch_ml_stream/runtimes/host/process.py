"""The process of a model: start, load, serve, unload."""

import asyncio
import gc
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Coroutine, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any

from opensearch_ml_stream.runtimes import model_metrics
from opensearch_ml_stream.runtimes.host import loading
from opensearch_ml_stream.runtimes.host.background_tasks import Turn, start_watched
from opensearch_ml_stream.runtimes.host.batching import AdaptiveBatcher
from opensearch_ml_stream.runtimes.host.engine_process import EngineProcess
from opensearch_ml_stream.runtimes.host.failures import FailureLog
from opensearch_ml_stream.runtimes.host.handler_application import CustomHandlers, custom_handlers
from opensearch_ml_stream.runtimes.host.keeper_socket import Figures, Keeper
from opensearch_ml_stream.runtimes.host.served_model import ServedModel
from opensearch_ml_stream.runtimes.host.worker_connection import WorkerConnection
from opensearch_ml_stream.runtimes.interface.alias import install_mlserver_alias
from opensearch_ml_stream.runtimes.model_metrics import MetricsFile
from opensearch_ml_stream.runtimes.shipped_runtimes import find_engine

FIGURES_SECONDS = 1.0
SECONDS_FOR_CALLS = 2.0  # to end, once the process is to end
SECONDS_FOR_UNLOAD = 3.0


def main(arguments: list[str]) -> int:
    """Run the process of a model: `arguments` are its name and the number of the keeper's socket. Its exit status."""
    name, descriptor = arguments
    _send_stdout_to_stderr()
    keeper = Keeper(int(descriptor))
    # Ctrl-C in a terminal comes here too: the server ends, and then this process by it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda _signal, _frame: keeper.end())
    log = FailureLog(name)
    try:
        start = keeper.start_line()
        settings = start["settings"]
        extra = (settings.get("parameters") or {}).get("extra")
        if engine := find_engine(settings.get("implementation") or "", extra):
            return _run(EngineProcess(keeper, start, engine, log).run())
        return _run(_Process(keeper, start, log).run())
    except EOFError as error:
        log.say(str(error))
    except SystemExit as error:
        log.say(f"the model's code ended the process: SystemExit: {error}")
    return 1


def _run(work: Coroutine[Any, Any, int]) -> int:
    """Run a coroutine on uvloop where the interpreter has it, as MLServer does: a stream costs a fifth less."""
    try:
        uvloop = import_module("uvloop")
    except ImportError:
        return asyncio.run(work)
    if not hasattr(asyncio, "Runner"):  # Python 3.10
        uvloop.install()
        return asyncio.run(work)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


def _send_stdout_to_stderr() -> None:
    """Send what is written to standard output, from C too, to standard error, by lines."""
    sys.stdout.flush()
    os.dup2(2, 1)
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(line_buffering=True)


class _Process:
    """One model, from its first line to its end."""

    def __init__(self, keeper: Keeper, start: Mapping[str, Any], log: FailureLog) -> None:
        self._keeper = keeper
        self._start = start
        self._log = log
        self._figures = Figures()
        self._connections: set[WorkerConnection] = set()
        self._failed = False  # the model's code has ended the process

    async def run(self) -> int:
        """Load, serve until the keeper ends it, unload. The exit status."""
        ending = asyncio.Event()
        self._keeper.watch(asyncio.get_running_loop(), ending.set)
        try:
            settings = self._prepare()
            model = await _unless(ending, self._load(settings))
            if model is None:
                return 0
            handlers = custom_handlers(model, self._log)
            server = await self._listen(model, handlers)
            self._keeper.tell("ready", **await loading.describe(model), handlers=handlers.described)
        except loading.CannotLoad as error:
            self._keeper.tell("failed", reason=str(error))
            self._log.raised("loading it", error.__cause__ or error)
            self._keeper.end()  # so that threads of the model cannot hold the process up
            return 1
        metrics = MetricsFile(import_module("mlserver.metrics").REGISTRY, self._start["socket"])
        telling = start_watched("figures", self._figures_turn(metrics), self._log, self._keeper)
        await ending.wait()
        telling.cancel()
        server.close()
        await self._end(model)
        return 1 if self._failed else 0

    def _prepare(self) -> Any:
        """Read the settings, and set the context of all tasks."""
        install_mlserver_alias()
        settings = loading.read_settings(self._start["folder"], self._start["settings"])
        _configure_logger(self._start.get("server_settings") or {}, self._log)
        context = import_module("mlserver.context")
        # MLServer's logger and metrics use these.
        context.model_name_var.set(settings.name)
        context.model_version_var.set(settings.version or "")
        return settings

    async def _load(self, settings: Any) -> Any:
        implementation = self._start["settings"].get("implementation") or ""
        model = loading.construct(self._start["folder"], implementation, settings)
        await loading.load(model)
        # Loaded objects stay; scanning them for garbage would interrupt streams.
        gc.collect()
        gc.freeze()
        return model

    async def _listen(self, model: Any, handlers: CustomHandlers) -> asyncio.AbstractServer:
        predict, settings = model.predict, model.settings
        if settings.max_batch_size > 1 and settings.max_batch_time > 0:
            batcher = AdaptiveBatcher(predict, settings.max_batch_size, settings.max_batch_time, self._figures)
            # As in MLServer, the model's own calls of predict() are batched, too.
            predict = model.predict = batcher.predict
        served = ServedModel(model, predict, handlers.application, self._figures, self._log, self._end_by_model)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        path = self._start["socket"]
        try:
            listener.bind(path)
        except OSError as error:
            raise loading.CannotLoad(error, f"the socket {path}") from error
        os.chmod(path, 0o600)  # nobody can connect before it listens
        loop = asyncio.get_running_loop()
        return await loop.create_unix_server(
            lambda: WorkerConnection(served, self._connections), sock=listener, backlog=1024
        )

    def _end_by_model(self) -> None:
        self._failed = True
        self._keeper.end()

    def _figures_turn(self, metrics: MetricsFile) -> Turn:
        last_figures: Mapping[str, int] = {}
        left_out: list[str] = []

        async def tell() -> float:
            nonlocal last_figures, left_out
            figures = self._figures.copied()
            if figures != last_figures:
                last_figures = figures
                self._keeper.tell("figures", **figures)
            left_out = self._write_metrics(metrics, left_out)
            return float(self._start.get("figures_seconds", FIGURES_SECONDS))

        return tell

    def _write_metrics(self, metrics: MetricsFile, left_out: list[str]) -> list[str]:
        """Write the model's metrics; log which of them are left out, and failures."""
        try:
            now = metrics.write()
        except OSError:  # an error of the disk, not of the model
            raise
        except Exception as error:  # noqa: BLE001 - a model registers what it likes
            self._log.raised("a metric", error)
            return left_out
        if now and now != left_out:
            self._log.say(f"metrics that are not shown, as there are too many, or by their name: {', '.join(now)}")
        return now

    async def _end(self, model: Any) -> None:
        with suppress(OSError):
            os.unlink(self._start["socket"])
        model_metrics.remove(self._start["socket"])
        tasks = [task for connection in self._connections for task in connection.cancel_calls()]
        if tasks:
            await asyncio.wait(tasks, timeout=SECONDS_FOR_CALLS)
        unloading = asyncio.ensure_future(_guarded_unload(model, self._log))
        await asyncio.wait([unloading], timeout=SECONDS_FOR_UNLOAD)
        if not unloading.done():
            self._log.say(f"unload() went on for {SECONDS_FOR_UNLOAD:.0f} s")
        if not self._failed:
            self._keeper.unloaded()


async def _unless(ending: asyncio.Event, loading_model: Awaitable[Any]) -> Any:
    """Await a model unless the process is to end first; then None."""
    task, end = asyncio.ensure_future(loading_model), asyncio.ensure_future(ending.wait())
    await asyncio.wait([task, end], return_when=asyncio.FIRST_COMPLETED)
    end.cancel()
    if task.done():
        return task.result()
    task.cancel()
    return None


async def _guarded_unload(model: Any, log: FailureLog) -> None:
    try:
        await model.unload()
    except Exception as error:  # noqa: BLE001 - a model raises what it likes
        log.raised("unload()", error)


def _configure_logger(server_settings: Mapping[str, Any], log: FailureLog) -> None:
    """Configure MLServer's logger as its server does; otherwise messages below warnings are lost."""
    try:
        settings = import_module("mlserver.settings").Settings(**server_settings)
        import_module("mlserver.logging").configure_logger(settings)
    except Exception as error:  # noqa: BLE001 - a file of logging settings can name anything
        log.raised("settings.json: the logger's configuration", error)
