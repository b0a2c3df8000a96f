import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest, UpstreamError
from opensearch_ml_stream.extensions.doctor.diagnosis.report import STEP_NAMES, Report, Step, read_report
from opensearch_ml_stream.extensions.doctor.diagnosis.step_log import MAX_SUMMARY_CHARACTERS, StepLog


class Clock:
    """Seconds that pass by themselves: half of one with each look."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 0.5
        return self.now


def step_of(log: StepLog, name: str) -> Step:
    return next(step for step in log.steps() if step.name == name)


def test_steps_come_in_their_order_and_those_never_taken_are_skipped() -> None:
    log = StepLog(Clock())
    with log.timed("template") as found:
        found.summary = "filled"
    log.record(Step("document", "ok", 1.0, "read"))
    steps = log.steps()
    assert [step.name for step in steps] == list(STEP_NAMES)
    assert [step.verdict for step in steps] == ["ok", "ok"] + ["skipped"] * 9
    assert (steps[1].summary, steps[1].milliseconds) == ("filled", 500.0)


def test_an_error_fails_its_step_and_goes_on() -> None:
    log = StepLog()
    with pytest.raises(InvalidRequest), log.timed("template") as found:
        found.details = {"a": 1}
        raise InvalidRequest("wrong. Very")
    step = step_of(log, "template")
    assert (step.verdict, step.summary, step.details, step.advice) == ("failed", "wrong. Very", {"a": 1}, None)
    assert log.has_failed


def test_an_error_of_a_connection_ends_in_its_advice() -> None:
    log = StepLog()
    log.fail_next(UpstreamError("Error communicating with remote model: Refused: a:1. Check the port. And the host"))
    step = step_of(log, "document")
    assert (step.summary, step.advice) == ("Refused: a:1", "Check the port. And the host")


def test_only_the_first_failure_is_kept() -> None:
    log = StepLog()
    log.fail_next(UpstreamError("first"))
    log.fail_next(UpstreamError("second"))
    assert [step.summary for step in log.steps() if step.verdict == "failed"] == ["first"]


def test_a_step_that_is_taken_again_takes_the_place_of_its_first_time() -> None:
    log = StepLog()
    log.fail_next(UpstreamError("once"))
    log.forget(("document",))
    with log.timed("document"):
        pass
    assert not log.has_failed


def test_what_is_interrupted_is_the_step_that_is_being_taken() -> None:
    log = StepLog()
    with pytest.raises(KeyboardInterrupt), log.timed("resolve"):
        raise KeyboardInterrupt
    log.interrupt("too late", "wait")
    assert step_of(log, "resolve").summary == "too late"
    log = StepLog()
    log.interrupt("too late", "wait")
    assert step_of(log, "document").verdict == "failed"


def test_a_summary_is_one_line_of_bounded_length() -> None:
    log = StepLog()
    log.fail_next(UpstreamError("a\nb " + "c" * 10_000))
    summary = step_of(log, "document").summary
    assert summary.startswith("a b c") and len(summary) == MAX_SUMMARY_CHARACTERS


def test_a_report_works_if_its_end_is_good_and_no_step_failed() -> None:
    end = Step("end", "ok", 1.0, "complete")
    assert Report((end,)).works
    assert Report((Step("gaps", "warning", 1.0, ""), end)).works
    assert not Report((Step("gaps", "failed", 1.0, ""), end)).works
    assert not Report((Step("end", "skipped", 1.0, ""),)).works


def test_a_report_is_read_as_it_was_written() -> None:
    report = Report((Step("end", "ok", 1.0, "complete", {"a": [1]}, "go on"),))
    assert read_report(report.to_json()) == report


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"steps": [{}]},
        {"steps": 5},
        {"steps": [{"name": "x", "verdict": "ok", "milliseconds": 1, "summary": "", "details": {}}]},
        {"steps": [], "stream": {}},
    ],
)
def test_what_is_no_report_is_refused(document: dict[str, object]) -> None:
    with pytest.raises(InvalidRequest, match="not a diagnosis report"):
        read_report(document)
