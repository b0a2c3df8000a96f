"""The steps of a diagnosis as they are taken: timed, judged, and the one that fails explained."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.extensions.doctor.diagnosis.report import STEP_NAMES, Step, StepName, Verdict

MAX_SUMMARY_CHARACTERS = 500

_PREFIX = "Error communicating with remote model: "


@dataclass(slots=True)
class Findings:
    """What the current step has found so far. If it fails, the error fills the fields that are empty."""

    summary: str = ""
    verdict: Verdict = "ok"
    details: Mapping[str, Any] = field(default_factory=dict)
    advice: str | None = None


class StepLog:
    """The steps of one diagnosis. A step that is taken again replaces its earlier result."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._steps: dict[StepName, Step] = {}
        self._current: tuple[StepName, float, Findings] | None = None

    @property
    def has_failed(self) -> bool:
        """Whether a step has failed."""
        return any(step.verdict == "failed" for step in self._steps.values())

    @contextmanager
    def timed(self, name: StepName) -> Iterator[Findings]:
        """Take a step: it is ok unless its findings say otherwise, and failed if an MLStreamError leaves it."""
        began, findings = self._clock(), Findings()
        self._current = (name, began, findings)
        try:
            yield findings
        except MLStreamError as error:
            self._record(name, began, failed(error, findings))
            self._current = None
            raise
        self._record(name, began, findings)
        self._current = None

    def record(self, step: Step) -> None:
        """Note a step that was judged elsewhere."""
        self._steps[step.name] = step

    def skip(self, names: tuple[StepName, ...], reason: str) -> None:
        """Note steps that do not apply."""
        for name in names:
            self.record(Step(name, "skipped", 0.0, reason))

    def forget(self, names: tuple[StepName, ...]) -> None:
        """Drop steps that are about to be taken again."""
        for name in names:
            self._steps.pop(name, None)

    def fail_next(self, error: MLStreamError, milliseconds: float = 0.0) -> None:
        """Note that the first step that was not taken failed with the error, unless one has failed already."""
        name = self._next_name()
        if not self.has_failed:
            findings = failed(error, Findings())
            self.record(Step(name, "failed", milliseconds, findings.summary, findings.details, findings.advice))

    def interrupt(self, summary: str, advice: str) -> None:
        """Note that the step that is being taken, or else the next one, was not done in time."""
        if self._current is not None:
            name, began, findings = self._current
            self._record(name, began, Findings(summary, "failed", findings.details, advice))
            return
        self.record(Step(self._next_name(), "failed", 0.0, summary, {}, advice))

    def steps(self) -> tuple[Step, ...]:
        """Return all steps in their order; those that were never taken are skipped."""
        skipped = "not reached, since a step before it failed"
        return tuple(self._steps.get(name) or Step(name, "skipped", 0.0, skipped) for name in STEP_NAMES)

    def _next_name(self) -> StepName:
        """Return the first step that was not taken, the last if all were."""
        for name in STEP_NAMES:
            if name not in self._steps:
                return name
        return STEP_NAMES[-1]

    def _record(self, name: StepName, began: float, findings: Findings) -> None:
        milliseconds = (self._clock() - began) * 1000
        self.record(
            Step(name, findings.verdict, milliseconds, findings.summary, dict(findings.details), findings.advice)
        )


def failed(error: MLStreamError, findings: Findings) -> Findings:
    """Return the findings of a step that failed with the error.

    In errors of connections, everything after the first sentence is advice.
    """
    problem, advice = error.reason, ""
    if error.reason.startswith(_PREFIX):
        problem, _, advice = error.reason.partition(". ")
    return Findings(
        findings.summary or one_line(problem), "failed", findings.details, findings.advice or one_line(advice) or None
    )


def one_line(text: str) -> str:
    """Return a text as one line of at most MAX_SUMMARY_CHARACTERS, without the prefix of connection errors."""
    line = " ".join(text[: 4 * MAX_SUMMARY_CHARACTERS].removeprefix(_PREFIX).split())
    return line if len(line) <= MAX_SUMMARY_CHARACTERS else line[: MAX_SUMMARY_CHARACTERS - 3] + "..."
