"""Compare how a stream arrives at two places, and find what something between them does to it.

Each place is measured by a call of its own, so no two responses need be alike: what is compared is how many times text
arrived, when the first of it came, how the response was encoded, and how it ended. Times are milliseconds after the
request was sent.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise
from typing import Any, Literal

Place = Literal["provider", "sidecar", "proxy"]
WireFormat = Literal["SSE", "NDJSON"]
Kind = Literal["buffers", "compresses", "cuts", "fails", "refuses", "retries", "unfinished", "unreachable"]
End = Literal["complete", "error", "cut", "refused", "unreachable", "too long"]
"""How a response ended: with its last object, with an error object, before either, with another status than 2xx, never
begun, or not within the time that is waited."""

SAME_ARRIVAL_MS = 5.0  # reads closer than this are one arrival: a busy machine splits and joins them by chance
_FEWEST_ARRIVALS = 5  # of the nearer place; of fewer, or closer together, nothing can be said
_SHORTEST_SPAN_MS = 250.0
_BUNCHING = 3  # this many times fewer arrivals are no chance
_AT_ITS_END = 0.8  # of the response's time, as the share that passes before the first text
_SILENCE_MS = 1_000.0  # before a cut, from which on it is a limit of silence, if it is also twice the longest gap


@dataclass(frozen=True, slots=True)
class PathTimeline:
    """How a response arrived. `reads` are (ms, bytes) of its body as it came; `chunks` the ms of each piece of text.

    `reason` says what an error object, an error response or the connection said. `received` is how many requests the
    sidecar counted for this one call, None if that is not known.
    """

    place: Place
    wire_format: WireFormat | None
    end: End
    end_ms: float
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    reads: Sequence[tuple[float, int]] = ()
    chunks: Sequence[float] = ()
    reason: str = ""
    received: int | None = None

    @property
    def arrivals(self) -> tuple[float, ...]:
        """The times at which text arrived; chunks of the same moment count once."""
        times: list[float] = []
        latest = -SAME_ARRIVAL_MS
        for milliseconds in self.chunks:
            if milliseconds - latest >= SAME_ARRIVAL_MS:
                times.append(milliseconds)
            latest = milliseconds
        return tuple(times)

    @property
    def longest_gap(self) -> float:
        """The longest time without text between two arrivals, 0 of less than two."""
        return max((after - before for before, after in pairwise(self.arrivals)), default=0.0)

    def to_json(self) -> dict[str, Any]:
        """Return the timeline as a JSON object."""
        return {
            "place": self.place,
            "format": self.wire_format,
            "status": self.status,
            "headers": dict(self.headers),
            "reads": [[round(milliseconds, 1), size] for milliseconds, size in self.reads],
            "chunks": [round(milliseconds, 1) for milliseconds in self.chunks],
            "end": self.end,
            "end_milliseconds": round(self.end_ms, 1),
            "reason": self.reason,
            "received": self.received,
        }


@dataclass(frozen=True, slots=True)
class Finding:
    """What happens to a stream before a place, in one line, and what to do. A stream with a warning still works."""

    kind: Kind
    place: Place
    formats: tuple[str, ...]
    verdict: Literal["warning", "failed"]
    summary: str
    advice: str

    def to_json(self) -> dict[str, Any]:
        """Return the finding as a JSON object."""
        return {
            "kind": self.kind,
            "place": self.place,
            "formats": list(self.formats),
            "verdict": self.verdict,
            "summary": self.summary,
            "advice": self.advice,
        }


_ADVICE: Mapping[Kind, str] = {
    "buffers": "Turn response buffering off there: in nginx do not ignore X-Accel-Buffering, or set `proxy_buffering "
    "off`; in HAProxy set `option http-no-delay`",
    "compresses": "Leave text/event-stream and application/x-ndjson uncompressed there (nginx: gzip_types); the "
    "responses say Cache-Control: no-transform, which it does not follow",
    "retries": "Turn retries of POST off there (nginx: proxy_next_upstream without non_idempotent, HAProxy: retry-on "
    "conn-failure): each one is a call that the provider is paid for. Somebody else who calls the model in this moment "
    "looks the same: ask again to be sure",
    "unreachable": "Check the address, and that it runs",
    "unfinished": "Ask for less: the response is waited for no longer, and what stands here may have no end of its own",
    "refuses": "Look for the reason there, in its log too: the sidecar itself responds to the same request with 200",
    "fails": "Ask again: the same call went well where it is nearer to the provider",
}
_SILENCE_ADVICE = (
    "Raise the time that it waits for the next byte (nginx: proxy_read_timeout, HAProxy: timeout server, a load "
    "balancer: idle timeout), or set opensearch_ml_stream.heartbeat_seconds to less than it"
)
_LIMIT_ADVICE = (
    "Raise the time that it gives a whole response (Envoy: `timeout: 0s` of the route, a gateway: integration or "
    "request timeout), or look in its log why it ends the response"
)
_BUFFERING_SIDECAR = (
    "Call the sidecar's own address with --url, if something stands before it; output guardrails, and a CPU that has "
    "no time, hold text back, too"
)


def compare(nearer: PathTimeline, further: PathTimeline) -> list[Finding]:
    """Return what goes wrong between `nearer` and `further`, the next place on the stream's path."""
    findings = [_how_it_ended(further), _encoding(nearer, further), _requests(further)]
    if further.chunks and further.end == "complete":
        findings.append(_buffering(nearer, further))
    return [finding for finding in findings if finding is not None]


def merge(findings: Sequence[Finding]) -> list[Finding]:
    """Merge findings of the same kind and place in both formats into one."""
    merged = []
    for _, alike in groupby(sorted(findings, key=_kind_of), key=_kind_of):
        first, *others = alike
        formats = [*first.formats, *(name for other in others for name in other.formats)]
        merged.append(replace(first, formats=tuple(dict.fromkeys(formats))))
    return merged


def _kind_of(finding: Finding) -> tuple[bool, str]:
    return finding.place == "proxy", finding.kind


def _how_it_ended(timeline: PathTimeline) -> Finding | None:
    match timeline.end:
        case "cut":
            return _cut(timeline)
        case "unreachable":
            return _finding("unreachable", timeline, f"cannot be reached: {timeline.reason}")
        case "refused":
            return _finding("refuses", timeline, f"responds with status {timeline.status}: {timeline.reason}")
        case "error":
            return _finding("fails", timeline, f"ends with an error: {timeline.reason}")
        case "too long":
            return _finding("unfinished", timeline, f"has not ended after {_seconds(timeline.end_ms)}")
        case "complete":
            return None


def _cut(timeline: PathTimeline) -> Finding:
    last = timeline.reads[-1][0] if timeline.reads else 0.0
    silence = timeline.end_ms - last
    was_silent = silence >= _SILENCE_MS and silence >= 2 * timeline.longest_gap
    after = f"cuts the response after {_seconds(timeline.end_ms)}"
    if was_silent:
        return _finding("cuts", timeline, f"{after}, {_seconds(silence)} of them silent", _SILENCE_ADVICE)
    return _finding("cuts", timeline, f"{after}, while text was arriving", _LIMIT_ADVICE)


def _encoding(nearer: PathTimeline, further: PathTimeline) -> Finding | None:
    encoding = further.headers.get("content-encoding", "identity")
    if encoding in ("identity", nearer.headers.get("content-encoding", "identity")):
        return None
    summary = f"compresses the response with {encoding}, which can hold text back"
    return _finding("compresses", further, summary, verdict="warning")


def _requests(timeline: PathTimeline) -> Finding | None:
    if timeline.received is None or timeline.received <= 1:
        return None
    return _finding("retries", timeline, f"sent the one request {timeline.received} times to the sidecar")


def _buffering(nearer: PathTimeline, further: PathTimeline) -> Finding | None:
    expected, arrived = nearer.arrivals, further.arrivals
    if len(expected) < _FEWEST_ARRIVALS or expected[-1] - expected[0] < _SHORTEST_SPAN_MS:
        return None
    if len(arrived) * _BUNCHING > len(expected):
        return None
    if arrived[0] >= _AT_ITS_END * further.end_ms and arrived[0] > expected[0]:
        summary = (
            f"holds the text back until the end: the first came after {_seconds(arrived[0])} of "
            f"{_seconds(further.end_ms)}, from the {nearer.place} after {_seconds(expected[0])}"
        )
    else:
        summary = (
            f"sends the text in bunches: {len(arrived)} arrivals, longest gap {_seconds(further.longest_gap)}; from "
            f"the {nearer.place} {len(expected)}, longest gap {_seconds(nearer.longest_gap)}"
        )
    return _finding("buffers", further, summary, _BUFFERING_SIDECAR if further.place == "sidecar" else "")


def _finding(
    kind: Kind, timeline: PathTimeline, summary: str, advice: str = "", verdict: Literal["warning", "failed"] = "failed"
) -> Finding:
    formats = () if timeline.wire_format is None else (timeline.wire_format,)
    return Finding(kind, timeline.place, formats, verdict, summary, advice or _ADVICE[kind])


def _seconds(milliseconds: float) -> str:
    return f"{milliseconds / 1000:.2f} s"
