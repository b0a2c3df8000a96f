"""The report of a diagnosis: what each step of a call did, and when its stream's bytes came; as JSON and back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, get_args

from opensearch_ml_stream.connectors.errors import InvalidRequest

MAX_READS = 10_000  # of a stream are kept, and as many times of chunks

StepName = Literal[
    "document", "template", "spec", "resolve", "connect", "tls", "response", "first_byte", "first_token", "gaps", "end"
]
"""The steps of a call, in their order."""

Verdict = Literal["ok", "warning", "failed", "skipped"]
STEP_NAMES: tuple[StepName, ...] = get_args(StepName)
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)

_Name = TypeVar("_Name", bound=str)


@dataclass(frozen=True, slots=True)
class Step:
    """One step: how long it took, what it found (`summary` is one line), and what to do if that is not good."""

    name: StepName
    verdict: Verdict
    milliseconds: float
    summary: str
    details: Mapping[str, Any] = field(default_factory=dict)
    advice: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the step as a JSON object; `advice` is absent where there is none."""
        document = {
            "name": self.name,
            "verdict": self.verdict,
            "milliseconds": round(self.milliseconds, 1),
            "summary": self.summary,
            "details": dict(self.details),
        }
        return document if self.advice is None else {**document, "advice": self.advice}


@dataclass(frozen=True, slots=True)
class StreamTimeline:
    """When the bytes of the provider's response came, and what they were. Times are ms after the request was sent.

    `reads` are (ms, bytes) of each read of the body, `chunks` the ms of each chunk of text, reasoning or tool calls;
    at most MAX_READS of either. `headers` are those of the response, in lower case, that hold no secret. `outcome` is
    `{"finish_reason", "usage", ...}` or `{"error", "type"}`, empty while the stream has not come to its end.
    """

    reads: Sequence[tuple[float, int]] = ()
    chunks: Sequence[float] = ()
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    outcome: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the timeline as a JSON object."""
        return {
            "reads": [[round(milliseconds, 1), size] for milliseconds, size in self.reads],
            "chunks": [round(milliseconds, 1) for milliseconds in self.chunks],
            "status": self.status,
            "headers": dict(self.headers),
            "outcome": dict(self.outcome),
        }


@dataclass(frozen=True, slots=True)
class Report:
    """A diagnosis: all steps in the order of STEP_NAMES, and the stream, None if no response has come."""

    steps: tuple[Step, ...]
    stream: StreamTimeline | None = None

    @property
    def works(self) -> bool:
        """Whether no step has failed, and the stream has come to its end."""
        ended = any(step.name == "end" and step.verdict in ("ok", "warning") for step in self.steps)
        return ended and all(step.verdict != "failed" for step in self.steps)

    @property
    def parameters(self) -> Mapping[str, str]:
        """The parameters of the call where they are not those of the request, since its text went to another one."""
        template = next((step for step in self.steps if step.name == "template"), None)
        return {} if template is None else template.details.get("parameters") or {}

    def to_json(self) -> dict[str, Any]:
        """Return `{"works", "steps", "stream"}`; `stream` is absent if no response has come."""
        document = {"works": self.works, "steps": [step.to_json() for step in self.steps]}
        return document if self.stream is None else {**document, "stream": self.stream.to_json()}


def read_report(document: Mapping[str, Any]) -> Report:
    """Return the report that a sidecar sent. InvalidRequest if the object is none, as from a sidecar of before."""
    try:
        steps = tuple(
            Step(
                _one_of(STEP_NAMES, step["name"]),
                _one_of(VERDICTS, step["verdict"]),
                float(step["milliseconds"]),
                str(step["summary"]),
                dict(step["details"]),
                step.get("advice"),
            )
            for step in document["steps"]
        )
        stream = document.get("stream")
        return Report(steps, None if stream is None else _read_timeline(stream))
    except (KeyError, TypeError, ValueError):
        raise InvalidRequest("The response is not a diagnosis report: does the sidecar have this version?") from None


def _read_timeline(stream: Mapping[str, Any]) -> StreamTimeline:
    return StreamTimeline(
        tuple((float(milliseconds), int(size)) for milliseconds, size in stream["reads"]),
        tuple(map(float, stream["chunks"])),
        int(stream["status"]),
        dict(stream["headers"]),
        dict(stream["outcome"]),
    )


def _one_of(names: Sequence[_Name], text: Any) -> _Name:
    return names[names.index(text)]
