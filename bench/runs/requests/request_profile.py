"""Where a whole prediction's CPU time goes, step by step: a chat completion's and an embedding's, before and after.

The cost comes from a run that nothing disturbs; how it divides comes from py-spy. Each sample counts for the step of
the innermost frame that belongs to one: what a step calls (json, re2, contextlib, the kernel) counts for the step.
"""

import re
import subprocess
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.relays.systems import NotStarted, Target, sidecar
from bench.report.table import NONE, grid, number
from bench.runs.measuring import WHOLE, finish_load
from bench.runs.profiles.profiling import py_spy, worker_of
from bench.runs.requests.whole_requests import CONNECTIONS, Effort, begin_load, measure
from bench.runs.rounds import bench_place, say
from bench.traffic.whole_bodies import CHAT, EMBEDDING

SECONDS = 8
SAMPLES_PER_SECOND = 499
COLUMNS = ("before", "after")

# In the order of a request's way. `FUNCTION (FILE:LINE)` is matched; the first pattern that is found counts.
STEPS = (
    ("accept, wait for events", r"uvloop/|asyncio/(?:runners|base_events)|plugin/server/(?:worker|serve|supervisor)"),
    (
        "parse",
        r"^(?!.*(?:send|write|_end|header_line)).*\(plugin/server/http1/(?!request_cycle)"
        r"|rest_handlers/http/(?:requests|body_)|starlette/requests",
    ),
    (
        "route",
        r"starlette/(?!responses)|urllib/"
        r"|rest_handlers/(?:application|base_path|http/host_and_origin|routes/predict_(?:stream|head))",
    ),
    ("rights, limits", r"plugin/(?:security|limits)/|rest_handlers/(?:callers|actions)"),
    ("document", r"plugin/(?:registry|store|settings)/|predictions/compiled_model"),
    ("JSON: the input read", r"connectors/(?:predict/(?:inputs|model_interface)|json_schema|documents)"),
    ("template", r"connectors/(?:rendering/|predict/pre_process)|painless"),
    ("upstream", r"plugin/upstream/|predictions/provider_call"),
    ("decode", r"connectors/(?:predict|processors|providers|decoding|unstreamed_response)"),
    ("redaction", r"plugin/credentials/"),
    ("encode", r"rest_handlers/http/responses"),
    ("metrics, statistics, log", r"plugin/(?:metrics|observation|statistics|logs|monitoring)|prometheus_client/"),
    ("write", r"(?:send|write|_end|header_line)\w* \(plugin/server/|starlette/responses"),
    ("tasks and the prediction's own steps", r"plugin/predictions/|rest_handlers/|plugin/server/"),
)

Division = dict[str, float]  # microseconds by step
Profiles = dict[str, dict[str, Any]]  # by column: what is in it, and the division of each kind of request


def divide(raw: str, us: float) -> Division:
    """The microseconds of each step, from py-spy's raw stacks, of a request that costs `us` in all."""
    counted: Counter[str] = Counter()
    for line in raw.splitlines():
        stack, _, samples = line.rpartition(" ")
        if "concurrent/futures" not in stack.rpartition(";")[2]:  # threads that wait for work
            counted[step_of(stack)] += int(samples)
    return {step: us * count / counted.total() for step, count in counted.items()}


def step_of(stack: str) -> str:
    """The step of the innermost frame of `outermost;...;innermost` that belongs to one."""
    for frame in reversed(stack.split(";")):
        for step, pattern in STEPS:
            if re.search(pattern, frame):
                return step
    return STEPS[0][0]


def profile_requests() -> dict[str, Division]:
    """The division of each kind of request. NotStarted if py-spy is missing or fails."""
    with bench_place(WHOLE) as place, sidecar(place) as target:
        found = {}
        for what in (CHAT, EMBEDDING):
            say(f"{what}: the cost, undisturbed")
            us = measure(target, what, Effort(SECONDS, 1))["us"]
            found[what] = divide(_stacks(target, what, place.folder / "stacks.txt"), us)
    return found


def _stacks(target: Target, what: str, file: Path) -> str:
    command = py_spy()
    if command is None:
        raise NotStarted("py-spy is not here: install it beside this Python (pip install py-spy)")
    say(f"{what}: with py-spy")
    load = begin_load(target, what, CONNECTIONS, seconds=SECONDS + 1)
    options = ["--pid", str(worker_of(target)), "--duration", str(SECONDS), "--rate", str(SAMPLES_PER_SECOND)]
    options += ["--format", "raw", "--output", str(file)]
    result = subprocess.run([command, "record", *options], capture_output=True, text=True)
    finish_load(load)
    if result.returncode:
        raise NotStarted(f"py-spy failed: {result.stderr.strip()[-200:]}")
    return file.read_text()


def profile_table(profiles: Profiles) -> str:
    """The steps in their order, with a column for each kind of request before and after."""
    columns = [(what, column) for what in (CHAT, EMBEDDING) for column in COLUMNS]
    divisions: list[Mapping[str, float]] = [profiles.get(column, {}).get(what, {}) for what, column in columns]

    def row(title: str, values: list[float | None]) -> list[str]:
        return [title, *(NONE if value is None else number(value, 3) for value in values)]

    rows = [row(step, [division.get(step, 0.0) if division else None for division in divisions]) for step, _ in STEPS]
    rows.append(row("**in all**", [sum(division.values()) if division else None for division in divisions]))
    return grid(("µs of CPU a request", *(f"{what}, {column}" for what, column in columns)), rows)
