"""The results as tables: markdown that reads well in a terminal too."""

from collections.abc import Sequence

from bench.runs.measuring import Metrics
from bench.runs.rounds import Results

TITLES = {
    "direct": "the provider itself",
    "sidecar": "**this sidecar**",
    "sidecar-openai": "**this sidecar**, OpenAI's API",
    "sidecar-batching": "**this sidecar**, batching",
    "nginx": "nginx (bytes only)",
    "vllm-router": "vLLM router (bytes only)",
    "smg": "SMG (bytes only)",
    "tensorzero": "TensorZero",
    "ml-commons": "ML Commons",
    "mlserver": "MLServer",
    "litellm": "LiteLLM proxy",
    "portkey": "Portkey",
}
# How many chunks they pass on at once depends on how far the provider runs ahead: no bulk is compared with theirs.
BYTE_RELAYS = ("nginx", "vllm-router", "smg")
HEAD = (
    "",
    "chunks per CPU-second, paced",
    "bulk",
    "first token added, p50 ms",
    "500 streams: added p50 / p99 ms",
    "2,000 streams: KiB each",
    "added p99 ms",
    "chunks sent after a hang-up",
    "failed streams",
)

NONE = "-"

Rows = Sequence[tuple[str, Metrics]]


def number(value: float | None, digits: int = 2) -> str:
    """With thousands marked; small numbers with so many significant digits."""
    if value is None:
        return NONE
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def count(value: float | None) -> str:
    """Rounded to three digits: more are noise."""
    return NONE if value is None else f"{float(f'{value:.3g}'):,.0f}"


def first_added(results: Results, system: str) -> float | None:
    """Milliseconds that the first token comes later than in a direct call, p50."""
    own = results.get(system, {}).get("first", {}).get("first_ms_p50")
    base = results.get("direct", {}).get("first", {}).get("first_ms_p50")
    if own is None or base is None or system == "direct":
        return None
    return own - base


def grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A markdown table with its columns aligned."""
    widths = [max(len(row[at]) for row in (head, *rows)) for at in range(len(head))]
    ruler = ["-" * width if not at else "-" * (width - 1) + ":" for at, width in enumerate(widths)]

    def line(row: Sequence[str]) -> str:
        cells = [
            text.rjust(width) if at else text.ljust(width)
            for at, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        return "| " + " | ".join(cells) + " |"

    return "\n".join([line(head), line(ruler), *map(line, rows)])


def systems_table(results: Results) -> str:
    """A row a system."""
    return grid(HEAD, [_row(results, system) for system in results])


def _row(results: Results, system: str) -> list[str]:
    by = results.get(system, {})

    def of(scenario: str, metric: str) -> float | None:
        return by.get(scenario, {}).get(metric)

    return [
        TITLES[system],
        count(of("paced", "chunks_per_cpu_second")),
        count(None if system in BYTE_RELAYS else of("bulk", "chunks_per_cpu_second")),
        number(first_added(results, system)),
        f"{number(of('many', 'added_ms_p50'))} / {number(of('many', 'added_ms_p99'))}",
        number(of("open", "kib_per_stream")) if system != "direct" else NONE,
        number(of("open", "added_ms_p99")),
        number(of("cancel", "chunks_after_cancel")),
        f"{sum(metrics.get('errors', 0) for metrics in by.values()):.0f}",
    ]


def ratios_table(results: Results) -> str:
    """The sidecar's chunks per CPU-second as multiples of each peer's."""
    rows = []
    for system in results:
        if system in ("direct", "sidecar"):
            continue
        cells = []
        for scenario in ("paced", "bulk"):
            own = results["sidecar"].get(scenario, {}).get("chunks_per_cpu_second")
            other = results[system].get(scenario, {}).get("chunks_per_cpu_second")
            if scenario == "bulk" and system in BYTE_RELAYS:
                other = None
            cells.append(f"{number(own / other)} x" if own and other else NONE)
        rows.append([TITLES[system], *cells])
    return grid(("this sidecar to", "paced", "bulk"), rows)


def requests_table(rows: Rows, columns: Sequence[tuple[str, str]]) -> str:
    """As `comparison_table`, a row a system under its title."""
    return comparison_table([(TITLES[name], figures) for name, figures in rows], columns)


def runs_of(rows: Sequence[tuple[str, str]]) -> str:
    """The conditions of the runs that the named rows come from; with the names, if it was more than one run."""
    names_of: dict[str, list[str]] = {}
    for name, conditions in rows:
        names_of.setdefault(conditions, []).append(TITLES[name].replace("*", ""))
    if len(names_of) == 1:
        return f"{next(iter(names_of))}."
    return " ".join(f"{', '.join(names)}: {conditions}." for conditions, names in names_of.items())


def comparison_table(rows: Rows, columns: Sequence[tuple[str, str]]) -> str:
    """Named measurements; each column is a title and a metric."""
    lines = [[name, *(number(metrics.get(metric), 3) for _, metric in columns)] for name, metrics in rows]
    return grid(("", *(title for title, _ in columns)), lines)
