"""The CPU time that a paced chunk costs the sidecar, and its division: the kernel, parsing, JSON, writing.

The cost comes from a run that nothing disturbs (user and kernel time of the process). How it divides comes from perf
where it is installed (each sample counts for the system call or library it was taken in), and from py-spy (each
counts for the file of the innermost Python function). Without either, the parts are timed by themselves.
"""

import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

from bench.relays.processes import tree
from bench.relays.systems import Place, Target, sidecar
from bench.report.table import grid, number
from bench.runs import scenarios
from bench.runs.measuring import begin_load, finish_load, measure, warm_up
from bench.runs.profiles.parts import time_parts
from bench.runs.rounds import bench_place, say
from bench.traffic.stream_plan import StreamPlan

SECONDS = 4
SAMPLES_PER_SECOND = 999

LOAD = replace(scenarios.PACED, stream=StreamPlan(400, scenarios.TOKEN_SECONDS))

# The first that matches counts.
KERNEL = (
    ("kernel: read", r"(?:__x64_sys|ksys|__sys)_(?:read|recv)"),
    ("kernel: write, with the reader's wake-up", r"(?:__x64_sys|ksys|__sys)_(?:write|send)"),
    ("kernel: wait for events", r"epoll"),
    ("kernel: other", r""),
)
LIBRARIES = (
    ("HTTP parse (httptools)", r"httptools"),
    ("JSON parse and print (orjson)", r"orjson"),
    ("event loop (uvloop)", r"uvloop"),
    ("Python: SSE parse, objects, metrics, the server", r"(?:^|/)(?:lib)?python[^/]*$"),
    ("C library and others", r""),
)
FILES = (
    ("HTTP parse of the provider's answer", r"plugin/upstream/|aiohttp"),
    ("SSE parse", r"connectors/decoding/"),
    ("JSON: the event read, the chunk printed", r"connectors/|json/"),
    ("write to the client", r"uvicorn/|plugin/server/"),
    ("event loop and system calls", r"asyncio/"),
    ("metrics", r"prometheus_client|plugin/(?:metrics|observation)"),
    ("the stream's own steps", r""),
)


def profile() -> str:
    """The cost and its division as markdown, with one table or two."""
    with bench_place() as place, sidecar(place) as target:
        warm_up(target)
        say("the cost, undisturbed")
        figures = measure(target, LOAD, place.provider)
        us = 1e6 / figures["chunks_per_cpu_second"]
        by_part, by_caller = _with_perf(place, target), _with_py_spy(place, target)
    # By perf's samples where it is there: the ticks of /proc keep step with the provider's timer.
    share = figures["kernel_share"] if not by_part else _kernel_share(by_part)
    lines = [
        f"A paced chunk costs {us:.1f} µs of CPU: {us * share:.1f} in the kernel, {us * (1 - share):.1f} outside it.",
        *(_shares(counted, us) for counted in (by_part, by_caller) if counted),
    ]
    if len(lines) == 1:
        say("neither perf nor py-spy is here: the parts are timed by themselves")
        lines.append(grid(("part, timed by itself", "µs"), [(name, number(us)) for name, us in time_parts()]))
    return "\n\n".join(lines)


def _kernel_share(counted: Counter[str]) -> float:
    return sum(counted[name] for name, _ in KERNEL) / counted.total()


def _shares(counted: Counter[str], us: float) -> str:
    total = sum(counted.values())
    rows = [(name, f"{us * n / total:.1f}", f"{100 * n / total:.0f} %") for name, n in counted.most_common()]
    return grid(("where", "µs a chunk", "share"), rows)


def _with_perf(place: Place, target: Target) -> Counter[str]:
    perf = shutil.which("perf")
    if perf is None:
        return Counter()
    data = place.folder / "perf.data"
    command = [perf, "record", "-g", "-F", str(SAMPLES_PER_SECOND), "-p", str(worker_of(target)), "-o", str(data)]
    if not _sampled("perf", target, [*command, "--", "sleep", str(SECONDS)]):
        return Counter()
    script = [perf, "script", "-i", str(data), "-F", "ip,sym,dso"]
    text = subprocess.run(script, capture_output=True, text=True, check=True).stdout
    return Counter(place_of_sample(sample) for sample in text.split("\n\n") if sample.strip())


def place_of_sample(stack: str) -> str:
    """The part of the sidecar or the kernel that a stack of perf's, innermost first, belongs to."""
    leaf = stack.strip().partition("\n")[0]
    library = leaf.rpartition("(")[2]
    if "kernel" in library or library.startswith("["):
        return first_match(KERNEL, stack)
    return first_match(LIBRARIES, library.rstrip(")"))


def py_spy() -> str | None:
    """The command, from beside this Python or the path."""
    beside = Path(sys.executable).parent / "py-spy"
    return str(beside) if beside.exists() else shutil.which("py-spy")


def _with_py_spy(place: Place, target: Target) -> Counter[str]:
    command = py_spy()
    if command is None:
        return Counter()
    raw = place.folder / "py-spy.txt"
    options = ["--pid", str(worker_of(target)), "--duration", str(SECONDS), "--rate", "499", "--format", "raw"]
    if not _sampled("py-spy", target, [command, "record", *options, "--output", str(raw)]):
        return Counter()
    counted: Counter[str] = Counter()
    for line in raw.read_text().splitlines():
        stack, _, samples = line.rpartition(" ")
        leaf = stack.rpartition(";")[2]
        if "concurrent/futures" not in leaf:  # threads that wait for work
            counted[first_match(FILES, leaf)] += int(samples)
    return counted


def worker_of(target: Target) -> int:
    """The process that does the work: the only child of the one that was started."""
    assert target.pid is not None
    return tree(target.pid)[-1]


def _sampled(name: str, target: Target, command: list[str]) -> bool:
    """Runs the profiler during the load; whether it succeeded."""
    say(f"with {name}")
    load = begin_load(target, LOAD)
    result = subprocess.run(command, capture_output=True, text=True)
    finish_load(load)
    if result.returncode:
        say(f"{name} failed: {result.stderr.strip()[-200:]}")
    return not result.returncode


def first_match(table: tuple[tuple[str, str], ...], text: str) -> str:
    return next(name for name, pattern in table if re.search(pattern, text))
