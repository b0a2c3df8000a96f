"""`python -m bench`: measure what a request and a streamed token cost in CPU, time and memory, here and elsewhere.

    python -m bench [--quick] [--rounds 3] [--systems sidecar,nginx]     the table of streams
    python -m bench --scenario predict | embed [--quick] [--rounds 3] [--systems sidecar,nginx]     whole requests
    python -m bench --scenario tls     streams of a provider behind TLS
    python -m bench --scenario doors     streams by OpenAI's and Anthropic's APIs
    python -m bench --scenario large | streams | workers | management | guardrails | v2 | runtimes |
        beside-runtimes | front-door | batching | start | memory    what grows with what
    python -m bench profile | profile-requests [--column before] | soak --minutes 30 | peers | render

`--write` puts the results into docs/performance.json, .md and .svg.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any, cast

from bench.relays import peers
from bench.relays.systems import NotStarted
from bench.report import page
from bench.report.plot import plot
from bench.report.table import comparison_table, ratios_table, requests_table, runs_of, systems_table
from bench.runs import growth
from bench.runs.doors import doors
from bench.runs.front_door import front_door
from bench.runs.memory import memory
from bench.runs.profiles.profiling import profile
from bench.runs.requests import whole_requests
from bench.runs.requests.merged_requests import batching
from bench.runs.requests.request_profile import COLUMNS, profile_requests, profile_table
from bench.runs.rounds import SYSTEMS, Results, run_rounds
from bench.runs.runtime_streams import runtimes, runtimes_beside
from bench.runs.scenarios import QUICK, STANDARD
from bench.runs.soak import soak
from bench.runs.tls_streams import tls
from bench.runs.v2_clients import v2

WHAT = ("run", "profile", "profile-requests", "soak", "peers", "render")
QUICK_SYSTEMS = ("direct", "sidecar", "nginx")

_COSTS = (("µs a chunk", "us_per_chunk"), ("ns a byte", "ns_per_byte"), ("failed streams", "errors"))
_WORKERS = (
    ("chunks per second of the busiest worker", "chunks_per_busiest_second"),
    ("chunks per CPU-second", "chunks_per_cpu_second"),
    ("scaling", "scaling"),
    ("failed streams", "errors"),
)
_ADDED = (("added p50 ms", "added_ms_p50"), ("added p99 ms", "added_ms_p99"), ("failed streams", "errors"))

_REQUEST = (
    ("requests per CPU-second", "per_cpu_second"),
    ("of nginx", "of_nginx"),
    ("µs of CPU a request", "us"),
    ("added p50 ms, 1 connection", "added_ms_p50"),
    ("added p99 ms", "added_ms_p99"),
)
REQUESTS: dict[str, tuple[Callable[..., growth.Rows], tuple[tuple[str, str], ...]]] = {
    "predict": (whole_requests.predict, (*_REQUEST, ("failed requests", "errors"))),
    "embed": (
        whole_requests.embed,
        (
            *_REQUEST,
            ("failed requests", "errors"),
            ("µs of CPU for 8 documents", "us_8"),
            ("8 to 1", "eight_to_one"),
            ("failed", "errors_8"),
        ),
    ),
}
_TLS = (
    ("µs a chunk, paced", "paced_us"),
    ("of nginx", "paced_of_nginx"),
    ("bulk", "bulk_us"),
    ("12 chunks a stream", "short_us"),
    ("of nginx", "short_of_nginx"),
    ("2,000 open streams: KiB each", "open_kib"),
    ("64 in bulk: KiB each", "bulk_kib"),
    ("failed streams", "errors"),
)
_DOORS = (
    ("µs a chunk, paced", "paced_us"),
    ("of predict", "paced_us_of_predict"),
    ("bulk", "bulk_us"),
    ("of predict", "bulk_us_of_predict"),
    ("µs a stream of 1 chunk", "request_us"),
    ("of predict", "request_us_of_predict"),
    ("first chunk p50 ms", "first_ms"),
    ("of predict", "first_ms_of_predict"),
    ("failed streams", "errors"),
)
_BATCHING = (
    ("requests per CPU-second", "per_cpu_second"),
    ("µs of CPU a request", "us"),
    ("calls a request", "calls"),
    ("p50 ms", "took_ms_p50"),
    ("p99 ms", "took_ms_p99"),
    ("failed requests", "errors"),
)

GROWTH: dict[str, tuple[Callable[[int], growth.Rows], tuple[tuple[str, str], ...]]] = {
    "large": (growth.large, _COSTS),
    "streams": (growth.streams, _COSTS),
    "workers": (growth.workers, _WORKERS),
    "management": (growth.management, _ADDED),
    "guardrails": (growth.guardrails, (*_ADDED[:2], *_COSTS[:1], _ADDED[2])),
    "runtimes": (runtimes, (("µs a chunk, paced", "paced_us"), ("bulk", "bulk_us"), ("failed streams", "errors"))),
    "beside-runtimes": (runtimes_beside, _ADDED),
    "v2": (v2, (("µs a chunk, paced", "paced_us"), ("bulk", "bulk_us"), ("failed streams", "errors"))),
    "front-door": (
        front_door,
        (
            ("searches a CPU-second", "searches"),
            ("MB up a CPU-second", "upload"),
            ("MB down a CPU-second", "download"),
        ),
    ),
    "tls": (tls, _TLS),
    "doors": (doors, _DOORS),
    "batching": (batching, _BATCHING),
    "start": (growth.cold_start, (("seconds after the process's start", "seconds"),)),
    "memory": (
        memory,
        (
            ("a worker at rest, MiB", "worker_mib"),
            ("all processes, MiB", "server_mib"),
            ("2,000 streams: KiB each", "kib_per_stream"),
            ("failed streams", "errors"),
        ),
    ),
}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", nargs="?", default="run", choices=WHAT)
    parser.add_argument("--column", default="after", choices=COLUMNS, help="of the page's table of profile-requests")
    parser.add_argument("--scenario", default="standard", choices=("standard", *REQUESTS, *GROWTH, "all"))
    parser.add_argument("--systems", default="", help=f"some of {','.join(SYSTEMS)} (all)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="about 30 s: one short round beside nginx")
    parser.add_argument("--minutes", type=float, default=30, help="of the soak")
    parser.add_argument("--write", action="store_true", help="write the results into docs/")
    options = parser.parse_args()
    there = whole_requests.REQUEST_SYSTEMS if options.scenario in REQUESTS else SYSTEMS
    unknown = [name for name in options.systems.split(",") if name and name not in there]
    if unknown:
        parser.error(f"no such system: {', '.join(unknown)}; there are {', '.join(there)}")
    if options.quick and options.write:
        parser.error("--quick is too short a run to be written")
    return options


def _say(text: str) -> None:
    sys.stdout.write(text + "\n\n")


def _standard(options: argparse.Namespace) -> None:
    chosen: Sequence[str] = [name for name in options.systems.split(",") if name]
    names = chosen or (QUICK_SYSTEMS if options.quick else tuple(SYSTEMS))
    rounds = 1 if options.quick else options.rounds
    results = run_rounds(names, QUICK if options.quick else STANDARD, rounds)
    _say(systems_table(results))
    if "sidecar" in results and len(results) > 1:
        _say(ratios_table(results))
    if options.write:
        page.save("standard", {"conditions": page.conditions(rounds, results), "results": results})


def _requests(name: str, options: argparse.Namespace) -> None:
    run, columns = REQUESTS[name]
    chosen = [system for system in options.systems.split(",") if system]
    names = chosen or (QUICK_SYSTEMS if options.quick else ())
    rounds = 1 if options.quick else options.rounds
    rows = run(rounds, names, whole_requests.Effort(1, 100) if options.quick else whole_requests.Effort())
    _say(requests_table(rows, columns))
    if options.write:
        _save_rows(name, rows, page.conditions(rounds, dict(rows)))


def _save_rows(name: str, rows: growth.Rows, conditions: str) -> None:
    """Keeps the rows of systems that were not measured this time, each with the conditions of its run."""
    kept = {row: part for row, *part in page.load().get(name, [])}
    kept |= {row: [figures, conditions] for row, figures in rows}
    order = [row for row in whole_requests.REQUEST_SYSTEMS if row in kept]
    page.save(name, [[row, *kept[row]] for row in order])


def _profile_requests(options: argparse.Namespace) -> None:
    column = {**profile_requests(), "conditions": f"{page.commit()}; {page.conditions(1, ())}"}
    _say(profile_table({options.column: column}))
    if options.write:
        page.save("profile-requests", {**page.load().get("profile-requests", {}), options.column: column})


def _growth(name: str, options: argparse.Namespace) -> None:
    run, columns = GROWTH[name]
    rows = run(1 if options.quick else options.rounds)
    _say(comparison_table(rows, columns))
    if options.write:
        page.save(name, rows)


def _render() -> None:
    """Writes the generated tables and the plot anew, from the results file."""
    parts: dict[str, Any] = page.load()
    if "standard" in parts:
        results = cast(Results, {name: parts["standard"]["results"][name] for name in _in_order(parts)})
        conditions = parts["standard"]["conditions"]
        text = f"{systems_table(results)}\n\n{ratios_table(results)}\n\n{conditions}."
        page.fill(page.PAGE, "table", text)
        chat, embeddings = ([row[:2] for row in parts.get(name, [])] for name in REQUESTS)
        page.PLOT.write_text(plot(results, conditions.partition("; Linux")[0], chat, embeddings))
    for name, (_, columns) in REQUESTS.items():
        if name in parts:
            table = requests_table([row[:2] for row in parts[name]], columns)
            runs = runs_of([(row, conditions) for row, _, conditions in parts[name]])
            page.fill(page.PAGE, name, f"{table}\n\n{runs}")
    for name, (_, columns) in GROWTH.items():
        if name in parts:
            page.fill(page.PAGE, name, comparison_table([(row[0], row[1]) for row in parts[name]], columns))
    if "profile-requests" in parts:
        profiles = parts["profile-requests"]
        notes = [f"{column}: {profiles[column]['conditions']}" for column in COLUMNS if column in profiles]
        page.fill(page.PAGE, "profile-requests", f"{profile_table(profiles)}\n\n{'. '.join(notes)}.")
    for name in ("profile", "soak"):
        if name in parts:
            page.fill(page.PAGE, name, parts[name])


def _in_order(parts: dict[str, Any]) -> list[str]:
    return [name for name in SYSTEMS if name in parts["standard"]["results"]]


def _run(options: argparse.Namespace) -> None:
    if options.scenario in ("standard", "all"):
        _standard(options)
    for name in REQUESTS:
        if options.scenario in (name, "all"):
            _requests(name, options)
    for name in GROWTH:
        if options.scenario in (name, "all"):
            _growth(name, options)


def main() -> None:
    options = _arguments()
    try:
        _do(options)
    except NotStarted as error:
        sys.exit(str(error))


def _do(options: argparse.Namespace) -> None:
    if options.what == "peers":
        peers.install()
    elif options.what == "run":
        _run(options)
    elif options.what == "profile-requests":
        _profile_requests(options)
    elif options.what in ("profile", "soak"):
        text = profile() if options.what == "profile" else str(soak(options.minutes))
        _say(text)
        if options.write:
            page.save(options.what, text)
    if options.write or options.what == "render":
        _render()


if __name__ == "__main__":
    main()
