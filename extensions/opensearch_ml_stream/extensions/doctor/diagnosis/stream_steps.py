"""The steps of a response, judged by the times of its reads, and what to do about each that is not good."""

from statistics import median
from typing import Any

from opensearch_ml_stream.connectors.chunks import Ending
from opensearch_ml_stream.connectors.decoding.contract import Outcome
from opensearch_ml_stream.connectors.errors import MLStreamError, StreamTruncated
from opensearch_ml_stream.extensions.doctor.diagnosis.observed_response import CallTimes
from opensearch_ml_stream.extensions.doctor.diagnosis.report import Step, StreamTimeline, Verdict
from opensearch_ml_stream.extensions.doctor.diagnosis.step_log import one_line
from opensearch_ml_stream.plugin.upstream import ReadTimedOut

LONG_MILLISECONDS = 10_000.0  # of silence: people give up, and the shortest timeouts of proxies are near
AT_ONCE_MILLISECONDS = 50.0  # a whole response that arrives within this time was buffered,
WAITED_MILLISECONDS = 1_000.0  # if the wait before it took at least this,
MANY_CHUNKS = 8  # and it has at least this many chunks

SHOWN_HEADERS = (
    "content-type", "content-encoding", "content-length", "transfer-encoding", "cache-control", "connection",
    "retry-after", "server", "via", "x-accel-buffering", "x-cache", "cf-ray", "date", "x-request-id", "request-id",
)  # fmt: skip
MAX_HEADER_CHARACTERS = 200

_HEARTBEATS = (
    "The sidecar sends its clients heartbeats meanwhile; whatever stands between it and the provider must wait so long"
)

# Seconds after which proxies, load balancers and clients commonly give up, and how close to one an end must be.
COMMON_TIMEOUTS = (5, 10, 15, 20, 30, 60, 90, 100, 120, 180, 230, 240, 300, 350, 600)
NEAR_SECONDS = 0.7

_BY_STATUS = {
    400: "The provider does not take the request: compare the template's body with the provider's documentation",
    401: "The provider does not take the credential: check its value in the connector, and the header that carries it",
    402: "The provider asks for payment: check the account's credit",
    403: "The provider refuses this credential: check the account's rights for this model, and its region",
    404: "The provider does not know this path or model: check the connector's url and the parameter for the model",
    405: "The path takes another method: check the action's url and method",
    413: "The request is too large for the provider, or for a proxy in front of it: send a shorter prompt",
    422: "The provider does not take the request: compare the template's body with the provider's documentation",
    429: "The provider limits this account: wait, raise its quota, or set max_retry_times in client_config",
}


def timeline(times: CallTimes, outcome: Outcome | None) -> StreamTimeline:
    """Return the times of a response as the report has them."""
    shown = {name: times.headers[name][:MAX_HEADER_CHARACTERS] for name in SHOWN_HEADERS if name in times.headers}
    return StreamTimeline(tuple(times.reads), tuple(times.chunks), times.status, shown, outcome_fields(outcome))


def outcome_fields(outcome: Outcome | None) -> dict[str, Any]:
    """Return a stream's outcome as JSON: an ending or an error, empty for none."""
    if outcome is None:
        return {}
    if isinstance(outcome, MLStreamError):
        return {"error": outcome.reason, "type": outcome.type}
    fields = {
        "finish_reason": outcome.finish_reason,
        "native_finish_reason": outcome.native_finish_reason,
        "model": outcome.model,
        "usage": None if outcome.usage is None else outcome.usage.as_dict(),
    }
    return {name: value for name, value in fields.items() if value is not None}


def response_step(times: CallTimes, refusal: MLStreamError | None, retries: int) -> Step:
    """Judge the response's head; `refusal` is the provider's error if its status is not 2xx."""
    milliseconds = times.head or 0.0
    shown = dict(timeline(times, None).headers)
    details = {"status": times.status, "headers": shown, "attempts": times.attempts}
    if refusal is not None:
        return Step(
            "response", "failed", milliseconds, one_line(f"status {times.status}: {refusal.reason}"), details,
            _advice_of_status(times.status),
        )  # fmt: skip
    summary = f"status {times.status}, {shown.get('content-type', 'no content-type')}"
    if times.attempts > 1:
        return Step(
            "response", "warning", milliseconds, f"{summary}, at attempt {times.attempts}", details,
            f"The first attempt failed. The connector allows {retries} more (max_retry_times in client_config), and "
            "each may be paid for",
        )  # fmt: skip
    if "content-encoding" in shown:
        return Step(
            "response", "warning", milliseconds, f"{summary}, compressed ({shown['content-encoding']})", details,
            "The provider, or a proxy in front of it, compresses although identity was asked for: a compressor holds "
            "back what it is given. Turn it off for text/event-stream",
        )  # fmt: skip
    return Step("response", "ok", milliseconds, summary, details)


def stream_steps(times: CallTimes, outcome: Outcome, *, was_whole: bool) -> tuple[Step, ...]:
    """Judge the body of a 2xx response that has ended; `was_whole` is whether it was one object, not a stream."""
    return (
        _first_byte(times, outcome),
        _first_token(times, outcome),
        _gaps(times, was_whole=was_whole),
        _end(times, outcome, was_whole=was_whole),
    )


def _first_byte(times: CallTimes, outcome: Outcome) -> Step:
    if not times.reads:
        summary = "the body has no byte" if isinstance(outcome, Ending) else one_line(outcome.reason)
        waited = (times.end or 0.0) - (times.head or 0.0)
        return Step("first_byte", "failed", waited, summary, {}, _advice_of(outcome, times))
    milliseconds = times.reads[0][0]
    step_time = milliseconds - (times.head or 0.0)
    summary = f"{_seconds(milliseconds)} after the request was sent"
    if milliseconds >= LONG_MILLISECONDS:
        return Step("first_byte", "warning", step_time, summary, {}, f"That is long. {_HEARTBEATS}")
    return Step("first_byte", "ok", step_time, summary)


def _first_token(times: CallTimes, outcome: Outcome) -> Step:
    begin = times.reads[0][0] if times.reads else times.head or 0.0
    if not times.chunks:
        waited = (times.end or begin) - begin
        if not times.reads:
            return Step("first_token", "skipped", 0.0, "not reached, since no byte came")
        verdict: Verdict = "warning" if isinstance(outcome, Ending) else "failed"
        summary = f"{times.byte_count} bytes came, and no text in them"
        return Step("first_token", verdict, waited, summary, {}, _advice_of(outcome, times))
    first = times.chunks[0]
    summary = f"{_seconds(first)} after the request was sent (time to first token)"
    if first >= LONG_MILLISECONDS and times.reads[0][0] < LONG_MILLISECONDS:
        return Step("first_token", "warning", first - begin, summary, {}, f"That is long. {_HEARTBEATS}")
    return Step("first_token", "ok", first - begin, summary, {"time_to_first_token": round(first, 1)})


def _gaps(times: CallTimes, *, was_whole: bool) -> Step:
    if not times.chunks:
        return Step("gaps", "skipped", 0.0, "not reached, since no text came")
    first, last = times.chunks[0], times.chunks[-1]
    gaps = [later - earlier for earlier, later in zip(times.chunks, times.chunks[1:], strict=False)]
    details: dict[str, Any] = {
        "chunks": times.chunk_count,
        "reads": times.read_count,
        "bytes": times.byte_count,
        "longest_gap": round(times.longest_gap, 1),
        "median_gap": round(median(gaps), 1) if gaps else 0.0,
    }
    if last > first:
        details["chunks_per_second"] = round((len(times.chunks) - 1) / (last - first) * 1000, 1)
    summary = f"{_many(times.chunk_count, 'chunk')} in {_many(times.read_count, 'read')}, longest silence "
    summary += _seconds(times.longest_gap)
    if times.longest_gap >= LONG_MILLISECONDS:
        return Step("gaps", "warning", last - first, summary, details, f"That is a long silence. {_HEARTBEATS}")
    if was_held_back(times) and not was_whole:
        summary = f"all {times.chunk_count} chunks came at once, {_seconds(first)} after the request was sent"
        return Step(
            "gaps", "warning", last - first, summary, details,
            "The provider, or a proxy in front of it, buffers the stream: turn buffering off there (nginx: "
            "proxy_buffering off), and check that the model streams at all",
        )  # fmt: skip
    return Step("gaps", "ok", last - first, summary, details)


def was_held_back(times: CallTimes) -> bool:
    """Return whether a long response came all at once after a wait, which means that something buffered it."""
    chunks = times.chunks
    if len(chunks) < MANY_CHUNKS:
        return False
    return chunks[0] >= WAITED_MILLISECONDS and chunks[-1] - chunks[0] <= AT_ONCE_MILLISECONDS


def _end(times: CallTimes, outcome: Outcome, *, was_whole: bool) -> Step:
    end = times.end if times.end is not None else times.last_read
    since_last = end - (times.chunks[-1] if times.chunks else times.head or 0.0)
    details = outcome_fields(outcome)
    if not isinstance(outcome, Ending):
        what_to_do = _advice_of(outcome, times) if times.chunks else None  # an earlier step has the advice
        return Step("end", "failed", since_last, one_line(outcome.reason), details, what_to_do)
    usage = None if outcome.usage is None else outcome.usage.as_dict()
    tokens = "no usage" if not usage else ", ".join(f"{name} {count}" for name, count in usage.items())
    summary = f"complete after {_seconds(end)}: {outcome.finish_reason}; {tokens}"
    if was_whole:
        return Step(
            "end", "warning", since_last, f"{summary}; one whole object, and no stream", details,
            "The provider does not stream although it was asked to: check that the server and the model can",
        )  # fmt: skip
    return Step("end", "ok", since_last, summary, details)


def _advice_of(outcome: Outcome, times: CallTimes) -> str | None:
    end = times.end if times.end is not None else times.last_read
    if isinstance(outcome, Ending):
        return "Ask for more: a longer prompt, or more tokens. Check what the connector's `_stream` says about the text"
    return _advice_of_end(outcome, end, has_chunks=bool(times.chunks))


def _many(count: int, name: str) -> str:
    return f"{count} {name}" if count == 1 else f"{count} {name}s"


def _seconds(milliseconds: float) -> str:
    return f"{milliseconds:.0f} ms" if milliseconds < 10_000 else f"{milliseconds / 1000:.1f} s"


def _advice_of_status(status: int) -> str:
    """Return what to do about a status that is not 2xx."""
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if 300 <= status < 400:
        return "The provider redirects, which no connector follows: put the address that it redirects to into the url"
    if status >= 500:
        return "The fault is the provider's, or of a proxy in front of it: call it again later, and see its status page"
    return "Compare the request with the provider's documentation"


def _advice_of_end(error: MLStreamError, milliseconds: float, *, has_chunks: bool) -> str:
    """Return what to do about a stream that ended in an error, so many milliseconds after its request."""
    timeout = common_timeout(milliseconds)
    cut = "" if timeout is None else f" It ended after {timeout} s, which looks like a timeout of one of these."
    if isinstance(error, ReadTimedOut):
        return (
            "Call the provider directly (curl) to see whether it is as silent there. If the model needs so long, raise "
            "read_timeout in the connector's client_config"
        )
    if isinstance(error, StreamTruncated) and has_chunks:
        return (
            "The provider, or a proxy or load balancer between here and it, closed the connection too early: look at "
            f"the timeouts and the logs of each.{cut}"
        )
    if has_chunks:
        return f"The provider ended its stream with an error: its own words are above.{cut}"
    return (
        "Check that this model can stream at this url, and that `_llm_interface` or `_stream` in the connector's "
        "parameters names what the provider sends"
    )


def common_timeout(milliseconds: float) -> int | None:
    """Return the common timeout that a time is near to, None for any other."""
    seconds = milliseconds / 1000
    return next((timeout for timeout in COMMON_TIMEOUTS if -0.1 <= seconds - timeout <= NEAR_SECONDS), None)
