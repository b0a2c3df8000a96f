"""Errors of calls of runtime models: what is wrong, where, and what to do. No message contains a request."""

from collections.abc import Sequence
from math import ceil
from typing import Any, NamedTuple

import orjson

from opensearch_ml_stream.connectors.errors import (
    MAX_REASON_CHARS,
    InvalidRequest,
    MLStreamError,
    NotFound,
    Throttled,
    Unavailable,
    UpstreamError,
)
from opensearch_ml_stream.extensions.runtimes.service.status import ModelStatus, ProcessStatus
from opensearch_ml_stream.extensions.v2.face import RaisedByModel, Unloaded
from opensearch_ml_stream.plugin.upstream import ReadTimedOut, ResponseFailed
from opensearch_ml_stream.runtimes.frames import MAX_PAYLOAD

MAX_UNREAD = 256 * 1024 * 1024  # bytes of requests that a process may leave unread in a worker, before the last one


def unknown_model(name: str) -> NotFound:
    """Return the error for a name that no model has."""
    return NotFound(
        f"There is no runtime model {name} on this server: start it with `serve --models DIR`, where a folder in DIR "
        "holds a model-settings.json with this name"
    )


def not_callable(name: str, model: ModelStatus) -> MLStreamError:
    """Return the error for a model without a process that could be called."""
    if model.state == "FAILED":
        return UpstreamError(f"The runtime of model {name} could not be loaded: {model.reason}")
    if model.state == "UNLOADED":
        return unloaded(name)
    if model.state == "LOADING" and not any(process.restarts for process in model.processes):
        return loading(name)
    return restarting(name, model.processes)


def loading(name: str) -> Unavailable:
    """Return the error for a model that is being loaded."""
    return Unavailable(f"The runtime of model {name} is loading; send the request again later", retry_after="1")


def unloaded(name: str) -> Unloaded:
    """Return the error for a model that is unloaded, or was unloaded before it responded."""
    return Unloaded(f"Model not ready yet. Please deploy the model first: {name} is unloaded")


def unloaded_in_the_middle(name: str) -> UpstreamError:
    """Return the error for a model that was unloaded after some of the responses to a call."""
    return UpstreamError(f"The runtime of model {name} was unloaded in the middle of its response")


def restarting(name: str, processes: Sequence[ProcessStatus]) -> UpstreamError:
    """Return the error for a model all of whose processes have ended."""
    wait = ceil(min((process.retry_in_seconds for process in processes), default=0.0))
    when = f"in {wait} s" if wait > 0 else "now"
    return UpstreamError(
        f"The process of runtime model {name} has ended and is started again {when}; the server's log says why it "
        "ended. Send the request again after that",
        retry_after=str(max(wait, 1)),
    )


def not_taken(name: str, size: int) -> Throttled:
    """Return the error for a call of a process that has left too many bytes of requests unread."""
    return Throttled(
        f"The process of runtime model {name} has left {size} bytes of requests unread; {MAX_UNREAD} are allowed. It "
        "is busy: send the request again later, or give the model more processes (parallel_workers)",
        type="rejected_execution_exception",
        retry_after="1",
        limit="runtime_unread",
    )


def too_large(name: str, size: int) -> InvalidRequest:
    """Return the error for a request that fits no frame."""
    return InvalidRequest(
        f"The request for the runtime of model {name} has {size} bytes; it takes {MAX_PAYLOAD} at most"
    )


def unreachable(name: str, error: OSError) -> UpstreamError:
    """Return the error for a process that cannot be connected to."""
    return UpstreamError(
        f"The process of runtime model {name} cannot be reached: {error.strerror or type(error).__name__}. It may "
        "have ended just now; send the request again",
        retry_after="1",
    )


def ended_early(name: str) -> UpstreamError:
    """Return the error for a process that ended before the first response to a call."""
    return UpstreamError(
        f"The runtime of model {name} ended before it responded; the server's log says why, and it is started again"
    )


def ended_in_the_middle(name: str) -> UpstreamError:
    """Return the error for a process that ended after some of the responses to a call."""
    return UpstreamError(
        f"The runtime of model {name} ended in the middle of its response; the server's log says why, and it is "
        "started again"
    )


def malformed(name: str, problem: str) -> UpstreamError:
    """Return the error for a process that sends malformed frames; `problem` contains nothing of them."""
    return UpstreamError(
        f"The process of runtime model {name} sent a malformed frame: {problem}. Check that its code does not write to "
        "sockets that it has not opened"
    )


def fell_silent(name: str, seconds: float) -> ReadTimedOut:
    """Return the error for a runtime that was silent between two chunks for longer than the limits allow."""
    return ReadTimedOut(
        f"Read timeout: the runtime of model {name} sent nothing for {seconds:g} s in the middle of its response. "
        "Raise _sidecar.limits.between_chunks_timeout_seconds of the model if it needs longer",
        type="timeout_exception",
    )


def raised_before(name: str, payload: bytes) -> UpstreamError:
    """Return the error that a model raised before its first response; `payload` is the frame's."""
    raised = _read(payload)
    kind = RaisedByModel if raised.is_own else UpstreamError
    error = kind(raised.reason(name), provider_status=raised.status, retry_after="1" if raised.status == 429 else None)
    if isinstance(error, RaisedByModel):
        error.words = raised.words[:MAX_REASON_CHARS]
    return error


def raised_in_the_middle(name: str, payload: bytes) -> ResponseFailed:
    """Return the error that a model raised after some of its responses."""
    raised = _read(payload)
    return ResponseFailed(raised.reason(name), provider_status=raised.status)


class _Raised(NamedTuple):
    """The contents of an ERROR frame. `is_own`: the model itself gave the status."""

    status: int | None = None
    is_own: bool = False
    kind: str = "an error that cannot be read"
    words: str = ""

    def reason(self, name: str) -> str:
        raised = f"The runtime of model {name} raised {self.kind}"
        return f"{raised}: {self.words}" if self.words else raised


def _read(payload: bytes) -> _Raised:
    """Read an ERROR frame; members that are missing or malformed are left out."""
    try:
        members: Any = orjson.loads(payload)
    except orjson.JSONDecodeError:
        members = None
    if not isinstance(members, dict):
        return _Raised()
    status = members.get("status")
    is_status = isinstance(status, int) and 400 <= status <= 599
    kind, words = str(members.get("type") or "an error"), str(members.get("reason") or "")
    return _Raised(status if is_status else None, is_status and members.get("is_own") is True, kind, words)
