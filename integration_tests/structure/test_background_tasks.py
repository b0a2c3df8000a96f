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

# Who starts a task, timer, thread or process otherwise, in how many places, and who sees what fails in it. What fails
# in a timer of one connection or call is logged and counted by the event loop's handler (`loop_failed` of the watch).
STARTS = {
    WATCHES: (2, "the watch itself"),
    "extensions.doctor.cli.replay_provider": (2, "`doctor`'s replay awaits both"),
    "extensions.front_door.relay": (1, "the exchange ends with its upload's error"),
    "extensions.runtimes.service.runtime_response": (1, "the timer of one call"),
    "extensions.runtimes.service.runtime_calls": (1, "the response fails with its error"),
    "plugin.cli.printing": (1, "a timer of programs, on a terminal"),
    "plugin.demo.background_server": (1, "the thread of `demo`, a program"),
    "plugin.limits.call_timeouts": (2, "the timer of one call"),
    "plugin.predictions.embedding_batches": (2, "the callers of the batch get its error"),
    "plugin.parallel": (2, "a TaskGroup, which is left when all have ended"),
    "plugin.predictions.model_cache": (7, "awaited by the call that starts them"),
    "plugin.refreshing_cache": (1, "who waits for the value gets its error"),
    "plugin.registry.connectors": (2, "awaited by the call that starts them"),
    "plugin.registry.deployment_state_store": (2, "awaited by the call that starts them"),
    "plugin.registry.model_deployment": (7, "awaited by the call that starts them"),
    "plugin.security.cluster_gate": (2, "awaited by the call that starts them"),
    "plugin.security.own_gate": (1, "the callers who log in get its error"),
    "plugin.server.http1.protocol": (
        4,
        "the request, whose errors are logged as its own; timers of one connection",
    ),
    "plugin.server.http1.tls_handshake": (1, "a client's handshake; the loop's own handler logs and counts its error"),
    "plugin.server.processes": (1, "a worker, which the supervisor watches"),
    "plugin.server.worker": (3, "the stop of a worker, which awaits them"),
    "plugin.store.opensearch_store": (1, "awaited by the call that starts it"),
    "plugin.upstream.http1.exchange": (2, "the timer of one exchange"),
    "plugin.upstream.http1.client": (1, "the timer of one connection"),
    "plugin.upstream.http1.pool": (2, "a timer that the next idle connection sets again, whatever became of it"),
    "plugin.upstream.http1.tls_connections": (1, "the timer of one handshake"),
    "rest_handlers.http.response_lifecycle": (3, "a response's watch of its client, and its heartbeats after errors"),
    "runtimes.host.batching": (2, "the calls of the batch get its error"),
    "runtimes.host.engine_process": (3, "awaited by the process that they are of"),
    "runtimes.host.keeper_socket": (1, "a thread that ends its process"),
    "runtimes.host.worker_connection": (2, "the call itself, whose errors are logged and sent"),
    "runtimes.host.process": (3, "awaited by the process that they are of"),
    "runtimes.host.background_tasks": (1, "the watch itself, in a model's process"),
    "runtimes.interface.model_files": (1, "MLServer's `schedule_with_callback`, whose caller gets the task"),
}


def starts(source: str) -> int:
    """In how many places a module starts a task, a timer, a thread or a process of its own code."""
    return sum(
        isinstance(node, ast.Call)
        and (node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")) in STARTERS
        for node in ast.walk(ast.parse(source))
    )


def test_only_these_places_start_what_the_watch_does_not_see() -> None:
    found = {name: count for name, file in modules().items() if (count := starts(file.read_text("utf-8")))}
    assert found == {name: count for name, (count, _) in STARTS.items()}


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
    assert starts(source) == 1
    assert not starts("background.start('name', work)")


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
