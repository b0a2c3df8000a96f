"""The results as an SVG: panels of bars (CPU), and of dots on a logarithmic scale (time). No library needed."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

from bench.report.table import BYTE_RELAYS, Rows, count, first_added, number
from bench.runs.rounds import Results

WIDTH = 880
PANEL, GAP, MARGIN = 404, 32, 20
LABELS = 104  # pixels left of the marks
ROW, HEAD = 30, 58
TITLE = 56

NAMES = {
    "sidecar": "this sidecar",
    "nginx": "nginx",
    "vllm-router": "vLLM router",
    "smg": "SMG",
    "tensorzero": "TensorZero",
    "ml-commons": "ML Commons",
    "mlserver": "MLServer",
    "litellm": "LiteLLM",
    "portkey": "Portkey",
    "direct": "no relay",
}

_LIGHT = {
    "ink": "#1c2733", "soft": "#5d6b7a", "rule": "#dde3ea", "own": "#0b7a75", "other": "#a9b5c2", "paper": "#ffffff",
}  # fmt: skip
_DARK = {
    "ink": "#e8edf2", "soft": "#9aa7b4", "rule": "#303a45", "own": "#35c2ba", "other": "#66727f", "paper": "#12181f",
}  # fmt: skip

_SHAPES = """\
  text { font: 13px -apple-system, "Segoe UI", Roboto, Helvetica, Arial, sans-serif; }
  .title { font-size: 19px; font-weight: 600; }
  .head { font-size: 14px; font-weight: 600; }
  .soft { font-size: 12px; }
  .own { font-weight: 600; }
  .tick { font-size: 11px; }
  .rule { stroke-width: 1; }
  .span { stroke-width: 3; stroke-linecap: round; }
  .open.open.open { stroke-width: 2; }
  .value { paint-order: stroke; stroke-width: 4px; stroke-linejoin: round; }
"""


def _colours(palette: Mapping[str, str]) -> str:
    """The rules of one palette, written out: renderers without CSS variables would draw all in black."""
    return f"""\
  .paper, .open.open.open {{ fill: {palette["paper"]}; }}
  text {{ fill: {palette["ink"]}; }}
  .soft, .tick {{ fill: {palette["soft"]}; }}
  .rule {{ stroke: {palette["rule"]}; }}
  .mark {{ fill: {palette["other"]}; stroke: {palette["other"]}; }}
  .mark.own {{ fill: {palette["own"]}; stroke: {palette["own"]}; }}
  .value {{ stroke: {palette["paper"]}; }}
"""


STYLE = f"""
{_colours(_LIGHT)}{_SHAPES}  @media (prefers-color-scheme: dark) {{
{_colours(_DARK)}  }}
"""


@dataclass(frozen=True, slots=True)
class Panel:
    """`values` by system: one number, or p50 and p99."""

    title: str
    note: str
    values: dict[str, tuple[float, ...]]
    dots: bool = False


def plot(results: Results, note: str, chat: Rows = (), embeddings: Rows = ()) -> str:
    """The drawing; readable on light and on dark pages. `note` is a line under the title."""
    panels = [panel for panel in (*_requests(chat, embeddings), *_panels(results)) if panel.values]
    parts = []
    top = TITLE + MARGIN
    for at in range(0, len(panels), 2):
        pair = panels[at : at + 2]
        for column, panel in enumerate(pair):
            parts.append(_panel(panel, MARGIN + column * (PANEL + GAP), top))
        top += HEAD + ROW * max(len(panel.values) for panel in pair) + 36
    height = top
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img" aria-label="What a request and a streamed token cost">\n<style>{STYLE}</style>\n'
        f'<rect class="paper" width="{WIDTH}" height="{height}" rx="8"/>\n'
        f'<text class="title" x="{MARGIN}" y="36">What a request and a streamed token cost</text>\n'
        f'<text class="soft" x="{MARGIN}" y="56">{escape(note)}</text>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _requests(chat: Rows, embeddings: Rows) -> list[Panel]:
    """Of whole requests; without the rows of a system that shows one feature."""

    def of(rows: Rows) -> dict[str, tuple[float, ...]]:
        return {name: (each["per_cpu_second"],) for name, each in rows if name in NAMES and "per_cpu_second" in each}

    return [
        Panel("Chat requests per CPU-second", "400 bytes back; more is better", of(chat)),
        Panel("Embeddings per CPU-second", "1,536 floats back; more is better", of(embeddings)),
    ]


def _panels(results: Results) -> list[Panel]:
    def of(scenario: str, *metrics: str) -> dict[str, tuple[float, ...]]:
        values_of = {}
        for system, by in results.items():
            values = tuple(by[scenario][metric] for metric in metrics if metric in by.get(scenario, {}))
            if len(values) == len(metrics) and system != "direct":
                values_of[system] = values
        return values_of

    first = {system: first_added(results, system) for system in results}
    added: dict[str, tuple[float, ...]] = {
        system: (value,) for system, value in first.items() if value is not None and value > 0
    }
    return [
        Panel(
            "Chunks per CPU-second, paced",
            "200 streams at 50 tokens a second; more is better",
            of("paced", "chunks_per_cpu_second"),
        ),
        Panel(
            "Chunks per CPU-second, in bulk",
            "64 streams without delay, relays that translate; more is better",
            {name: value for name, value in of("bulk", "chunks_per_cpu_second").items() if name not in BYTE_RELAYS},
        ),
        Panel("First token added, ms", "median, over the direct call; less is better", added, dots=True),
        Panel(
            "Added per token at 500 streams, ms",
            "p50 (full) to p99 (open); less is better",
            of("many", "added_ms_p50", "added_ms_p99"),
            dots=True,
        ),
    ]


def _panel(panel: Panel, left: int, top: int) -> str:
    lines = [
        f'<text class="head" x="{left}" y="{top + 20}">{escape(panel.title)}</text>',
        f'<text class="soft" x="{left}" y="{top + 38}">{escape(panel.note)}</text>',
    ]
    start, end = left + LABELS, left + PANEL - 62  # the values stand right of the marks
    bottom = top + HEAD + ROW * len(panel.values)
    if panel.dots:
        lines += _decades(panel, start, end, top + HEAD - 8, bottom)
    for at, (system, values) in enumerate(panel.values.items()):
        middle = top + HEAD + ROW * at + 11
        own = " own" if system == "sidecar" else ""
        lines.append(f'<text class="{own.strip()}" x="{left}" y="{middle + 5}">{escape(NAMES[system])}</text>')
        draw = _dots if panel.dots else _bar
        lines.append(draw(panel, values, own, (start, end), middle))
    return "\n".join(lines)


def _bar(panel: Panel, values: tuple[float, ...], own: str, span: tuple[int, int], middle: int) -> str:
    start, end = span
    length = max((end - start) * values[0] / max(each[0] for each in panel.values.values()), 2)
    return (
        f'<rect class="mark{own}" x="{start}" y="{middle - 9}" width="{length:.1f}" height="18" rx="2"/>'
        f'<text class="value{own}" x="{start + length + 8:.1f}" y="{middle + 5}">{count(values[0])}</text>'
    )


def _bounds(panel: Panel) -> tuple[int, int]:
    """The powers of ten that hold all values."""
    every = [value for values in panel.values.values() for value in values if value > 0]
    low = math.floor(math.log10(min(every)))
    return low, max(math.ceil(math.log10(max(every))), low + 1)


def _at(panel: Panel, value: float, span: tuple[int, int]) -> float:
    low, high = _bounds(panel)
    share = (math.log10(max(value, 10.0**low)) - low) / (high - low)
    return span[0] + share * (span[1] - span[0])


def _decades(panel: Panel, start: int, end: int, top: int, bottom: int) -> list[str]:
    lines = []
    low, high = _bounds(panel)
    for power in range(low, high + 1):
        x = _at(panel, 10.0**power, (start, end))
        lines.append(f'<line class="rule" x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{bottom}"/>')
        lines.append(f'<text class="tick" x="{x:.1f}" y="{bottom + 14}" text-anchor="middle">{_power(power)}</text>')
    return lines


def _power(power: int) -> str:
    return f"{10**power:,}" if power >= 0 else f"{10.0**power:g}"


def _dots(panel: Panel, values: tuple[float, ...], own: str, span: tuple[int, int], middle: int) -> str:
    xs = [_at(panel, value, span) for value in values]
    parts = []
    if len(xs) > 1:
        parts.append(f'<line class="mark span{own}" x1="{xs[0]:.1f}" y1="{middle}" x2="{xs[-1]:.1f}" y2="{middle}"/>')
        parts.append(f'<circle class="mark{own} open" cx="{xs[-1]:.1f}" cy="{middle}" r="5"/>')
    parts.append(f'<circle class="mark{own}" cx="{xs[0]:.1f}" cy="{middle}" r="6"/>')
    label = " / ".join(map(number, values))
    parts.append(f'<text class="value{own}" x="{xs[-1] + 11:.1f}" y="{middle + 5}">{label}</text>')
    return "".join(parts)
