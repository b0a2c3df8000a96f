"""Imports point one way: plugin -> rest_handlers -> connectors, and inside `plugin` from the outside in."""

import ast

from integration_tests.structure.modules import imports, modules, room

# What each room may import beside itself. The same table stands in docs/architecture.md.
ALLOWED: dict[str, set[str]] = {
    "connectors": set(),
    "rest_handlers": {"connectors"},
    "client": {"connectors", "rest_handlers"},
    "runtimes": set(),  # it runs in interpreters that have nothing else of ours
    "plugin": set(),
    "plugin.__main__": set(),  # it loads plugin.cli by name
    "plugin.tls": {"connectors"},
    "plugin.all_done": set(),
    "plugin.background_task": set(),
    "plugin.remembered": {"connectors"},
    "plugin.clock": set(),
    "plugin.locked_file": set(),
    "plugin.shared_table": {"plugin.locked_file"},
    "plugin.security": {
        "connectors", "rest_handlers", "plugin.all_done", "plugin.background_task", "plugin.clock",
        "plugin.locked_file", "plugin.remembered", "plugin.settings", "plugin.shared_table", "plugin.store",
    },
    "plugin.cli": {
        "connectors", "rest_handlers", "client", "plugin.clock", "plugin.demo", "plugin.diagnosis", "plugin.security",
        "plugin.settings", "plugin.store", "plugin.upstream",
    },
    "plugin.demo": set(),
    "plugin.logs": {"connectors", "rest_handlers", "plugin.settings"},
    "plugin.server": {
        "connectors", "rest_handlers", "plugin.app", "plugin.background_task", "plugin.logs", "plugin.metrics",
        "plugin.runtimes", "plugin.security", "plugin.settings", "plugin.store", "plugin.tls",
    },
    "plugin.runtimes": {
        "connectors", "rest_handlers", "runtimes", "plugin.background_task", "plugin.clock", "plugin.credentials",
        "plugin.registry", "plugin.security", "plugin.settings", "plugin.store", "plugin.upstream",
    },
    "plugin.grpc_port": {
        "connectors", "rest_handlers", "plugin.background_task", "plugin.logs", "plugin.settings", "plugin.tls",
    },
    "plugin.app": {
        "rest_handlers", "plugin.clock", "plugin.credentials", "plugin.diagnosis", "plugin.limits", "plugin.metrics",
        "plugin.monitoring", "plugin.pass_through", "plugin.playground", "plugin.predictions", "plugin.registry",
        "plugin.runtimes", "plugin.security",
        "plugin.settings", "plugin.statistics", "plugin.store", "plugin.upstream", "plugin.v2",
    },
    "plugin.v2": {
        "connectors", "rest_handlers", "plugin.predictions", "plugin.registry", "plugin.remembered", "plugin.runtimes",
        "plugin.settings", "plugin.store",
    },
    "plugin.predictions": {
        "connectors", "rest_handlers", "plugin.all_done", "plugin.clock", "plugin.credentials", "plugin.limits",
        "plugin.metrics", "plugin.registry", "plugin.remembered", "plugin.runtimes", "plugin.settings",
        "plugin.statistics", "plugin.store", "plugin.upstream",
    },
    "plugin.limits": {
        "connectors", "plugin.background_task", "plugin.clock", "plugin.locked_file", "plugin.metrics",
        "plugin.settings", "plugin.shared_table", "plugin.store", "plugin.upstream",
    },
    "plugin.diagnosis": {
        "connectors", "rest_handlers", "plugin.credentials", "plugin.limits", "plugin.metrics", "plugin.predictions",
        "plugin.settings", "plugin.statistics", "plugin.upstream",
    },
    "plugin.monitoring": {
        "connectors", "rest_handlers", "plugin.clock", "plugin.registry", "plugin.runtimes", "plugin.statistics",
        "plugin.store",
    },
    "plugin.playground": {
        "connectors", "rest_handlers", "client", "plugin.registry", "plugin.statistics", "plugin.store",
    },
    "plugin.registry": {
        "connectors", "rest_handlers", "plugin.all_done", "plugin.background_task", "plugin.clock",
        "plugin.credentials", "plugin.security", "plugin.settings", "plugin.store", "plugin.upstream",
    },
    "plugin.pass_through": {
        "connectors", "rest_handlers", "plugin.security", "plugin.settings", "plugin.store", "plugin.upstream",
    },
    "plugin.upstream": {"connectors", "plugin.settings", "plugin.shared_table", "plugin.tls"},
    "plugin.credentials": {"connectors", "plugin.store"},
    "plugin.settings": {"connectors", "plugin.background_task", "plugin.store"},
    "plugin.store": {"connectors", "plugin.clock", "plugin.tls"},
    "plugin.metric_files": set(),
    "plugin.metrics": {"connectors", "plugin.metric_files"},
    "plugin.statistics": {"connectors", "plugin.locked_file"},
}  # fmt: skip


def test_a_room_imports_from_the_rooms_that_it_may_use_and_from_each_of_them() -> None:
    used: dict[str, set[str]] = {own: set() for own in ALLOWED}
    for name, imported in imports().items():
        used[room(name)] |= {room(other) for other in imported} - {room(name)}
    assert used == ALLOWED


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Packages count as what their `__init__` imports, since importing a module runs it."""
    graph = {name: set(imported) for name, imported in imports().items()}
    for name, imported in graph.items():
        for other in tuple(imported):
            parents = (other.rsplit(".", level)[0] for level in range(1, other.count(".") + 1))
            imported |= {parent for parent in parents if parent in graph and not f"{name}.".startswith(f"{parent}.")}
    while leaves := {name for name, imported in graph.items() if not imported & graph.keys()}:
        graph = {name: imported for name, imported in graph.items() if name not in leaves}
    assert graph == {}


def test_nothing_is_imported_inside_a_function() -> None:
    for name, file in modules().items():
        tree = ast.parse(file.read_text("utf-8"))
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        inside = [node for function in functions for node in ast.walk(function)]
        assert [(name, node.lineno) for node in inside if isinstance(node, ast.Import | ast.ImportFrom)] == []
