"""Nothing goes on beside requests unwatched: tasks are started by `BackgroundTasks`, or awaited by who starts them."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from integration_tests.structure.modules import CHECKOUT, modules

STARTERS = {
    "create_task",
    "ensure_future",
    "TaskGroup",
    "start_new_thread",
    "Thread",
    "Timer",
    "run_coroutine_threadsafe",
    "call_later",
    "call_at",
    "fork",
}
WATCHES = "plugin.background_tasks"

# Who starts a task, timer, thread or process otherwise, and who sees what fails in it. What fails in a timer of one
# connection or call is logged and counted by the event loop's handler (`BackgroundTasks.loop_failed`).
STARTS = {
    WATCHES: "the watch itself",
    "extensions.doctor.cli.replay_provider": "`doctor`'s replay awaits both",
    "extensions.front_door.relay.relay": "the exchange ends with its upload's error",
    "extensions.runtimes.service.runtime_response": "the timer of one call",
    "extensions.runtimes.service.further_requests": "the response fails with its error",
    "plugin.cli.printing": "a timer of programs, on a terminal",
    "plugin.demo.background_server": "the thread of `demo`, a program",
    "plugin.limits.call_timeouts": "the timer of one call",
    "plugin.predictions.embedding_batches": "the callers of the batch get its error",
    "plugin.predictions.model_cache": "awaited by the call that starts them",
    "plugin.predictions.run_parallel": "a TaskGroup, which is left when all have ended",
    "plugin.refreshing_cache": "who waits for the value gets its error",
    "plugin.registry.connectors": "awaited by the call that starts them",
    "plugin.registry.deployment_state_store": "awaited by the call that starts them",
    "plugin.registry.model_deployment": "awaited by the call that starts them",
    "plugin.security.cluster_roles": "awaited by the call that starts them",
    "plugin.security.own_gate": "the callers who log in get its error",
    "plugin.server.http1.half_closed": "the timer of one connection",
    "plugin.server.http1.protocol": "the request itself, whose errors are logged as its own",
    "plugin.server.processes": "a worker, which the supervisor watches",
    "plugin.server.tls.handshake": "a client's handshake; the loop's own handler logs and counts its error",
    "plugin.server.worker": "the stop of a worker, which awaits them",
    "plugin.store.opensearch_store": "awaited by the call that starts it",
    "plugin.upstream.http1.exchange": "the timer of one exchange",
    "plugin.upstream.http1.linger": "the timer of one connection",
    "plugin.upstream.http1.pool": "a timer that the next idle connection sets again, whatever became of it",
    "rest_handlers.http.message_watch": "ended by the response that it watches the client for",
    "rest_handlers.http.response_lifecycle": "a stream's heartbeat, which goes on after an error",
    "runtimes.host.batching": "the calls of the batch get its error",
    "runtimes.host.engine_process": "awaited by the process that they are of",
    "runtimes.host.keeper_socket": "a thread that ends its process",
    "runtimes.host.model_call": "the call itself, whose errors are logged and sent",
    "runtimes.host.process": "awaited by the process that they are of",
    "runtimes.host.watched": "the watch itself, in a model's process",
    "runtimes.interface.model_files": "MLServer's `schedule_with_callback`, whose caller gets the task",
}


def starts_task(source: str) -> bool:
    """Whether a module starts a task, a timer, a thread or a process of its own code."""
    return any(
        isinstance(node, ast.Call)
        and (node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")) in STARTERS
        for node in ast.walk(ast.parse(source))
    )


def test_only_these_modules_start_tasks_that_the_watch_does_not_see() -> None:
    starters = {name for name, file in modules().items() if starts_task(file.read_text("utf-8"))}
    assert starters == set(STARTS)


@pytest.mark.parametrize(
    "source",
    [
        "asyncio.create_task(work())",
        "loop.create_task(work())",
        "from asyncio import ensure_future\nensure_future(work())",
        "async def f():\n    async with asyncio.TaskGroup() as group:\n        pass",
        "threading.Thread(target=work).start()",
        "Timer(1, work)",
        "os.fork()",
        "loop.call_later(1, again)",
    ],
)
def test_every_way_to_start_one_is_found(source: str) -> None:
    assert starts_task(source)
    assert not starts_task("background.start('name', work)")


def test_every_background_task_is_broken_once_in_a_test() -> None:
    started = {name for file in modules().values() for name in _names(file, ("running", "start"))}
    broken = {name for file in _tests() for name in _names(file, ("breaks",))}
    assert broken == started | {"supervisor", "event loop"}


def _tests() -> Iterator[Path]:
    for room in ("plugin", "extensions"):
        yield from (CHECKOUT / room / "tests").rglob("test_*.py")


def _names(file: Path, methods: tuple[str, ...]) -> Iterator[str]:
    """Yield the texts with which a module calls methods of these names."""
    text = file.read_text("utf-8")
    if not any(f".{method}(" in text for method in methods):
        return
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in methods
            and node.args
            and isinstance(node.args[0], ast.Constant)
            and isinstance(node.args[0].value, str)
        ):
            yield node.args[0].value
