"""A jump of the wall clock (NTP, a suspended machine, a wrong hand) stops nothing: waits and limits never read it."""

import ast

from integration_tests.structure.modules import modules

WALL_CLOCK = {
    "time.time",
    "time.time_ns",
    "time.gmtime",
    "time.localtime",
    "datetime.now",
    "datetime.utcnow",
    "datetime.today",
}

# What needs the date, and what a jump does to it.
READERS = {
    "client.errors": "a `Retry-After` that is a date, for which nothing here waits",
    "plugin.credentials.cipher": "the create_time of the master key, which nothing compares",
    "plugin.demo.openai_chat": "the demo's `created`",
    "extensions.doctor.diagnosis.diagnosing_upstream": "the days for which a report says that a certificate is good",
    "plugin.predictions.provider_call": "AWS signatures: AWS refuses one that is more than 5 minutes off",
    "plugin.clock": "create and update times of documents; changes are found by sequence numbers; `now` in searches",
    "plugin.server.port_certificate": "a warning of a certificate that is out of date",
    "plugin.store.sqlite_store": "the first bytes of ids, for their order; the others are random",
    "extensions.v2.http.headers": "the time of a response that is a CloudEvent, which nothing here compares",
    "plugin.upstream.retries": "a `Retry-After` that is a date; the wait is bounded by retry_timeout_seconds",
}


def reads_wall_clock(source: str) -> bool:
    names = {ast.unparse(node) for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute)}
    imported = {
        f"{node.module}.{alias.name}"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    return not WALL_CLOCK.isdisjoint(names | imported)


def test_only_these_modules_read_the_wall_clock() -> None:
    readers = {name for name, file in modules().items() if reads_wall_clock(file.read_text("utf-8"))}
    assert readers == set(READERS)


def test_every_way_to_read_it_is_found() -> None:
    assert reads_wall_clock("import time\ntime.time()")
    assert reads_wall_clock("from time import time\ntime()")
    assert reads_wall_clock("from datetime import UTC, datetime\ndatetime.now(UTC)")
    assert not reads_wall_clock("from time import monotonic\nmonotonic()")
