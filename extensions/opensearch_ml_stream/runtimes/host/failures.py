"""Failures of a model: their error frames and their logs."""

import json
import sys
import time
import traceback
from contextlib import suppress
from typing import Any

from opensearch_ml_stream.runtimes.interface.wire import MalformedRequest

MAX_REASON = 2000  # characters
TRACEBACKS_IN_WINDOW = 10
WINDOW_SECONDS = 10.0


def error_payload(error: BaseException, mlserver_error: type[Exception]) -> bytes:
    """Encode an exception for an ERROR frame: `{"status", "is_own", "type", "reason"}`.

    Without a status of its own: 501 for a method that the model does not have, 500 for anything else.
    """
    own = own_status(error, mlserver_error)
    status = own or (501 if isinstance(error, NotImplementedError) else 500)
    members = {"status": status, "is_own": own is not None, "type": type_of(error), "reason": reason_of(error)}
    return json.dumps(members).encode()


def own_status(error: BaseException, mlserver_error: type[Exception]) -> int | None:
    """Find the HTTP status of an exception, with which MLServer would respond; None without one."""
    if isinstance(error, MalformedRequest):
        return 422
    # MLServer's FastAPI responds with the status of its own errors, and of those that are HTTPExceptions.
    if isinstance(error, mlserver_error) or type(error).__name__ == "HTTPException":
        status: Any = getattr(error, "status_code", None)
        return status if isinstance(status, int) and 400 <= status <= 599 else None
    return None


def type_of(error: BaseException) -> str:
    """Name the exception as its traceback would, without the module."""
    return type(error).__name__


def reason_of(error: BaseException) -> str:
    """Return an exception's text, cut at MAX_REASON; "" if it cannot be read."""
    try:
        return str(error)[:MAX_REASON]
    except Exception:  # noqa: BLE001 - a model's exception has a method of its own for it
        return ""


class FailureLog:
    """Logs exceptions of the model to stderr, each in one write, and only so many in a time."""

    def __init__(self, model_name: str) -> None:
        self._model_name = model_name
        self._window_ends = 0.0
        self._left = 0
        self._withheld = 0

    def raised(self, what: str, error: BaseException) -> None:
        """Log an exception that `what`, such as a method, raised, with its traceback but nothing of the request."""
        text = f"{what} raised {type_of(error)}: {reason_of(error)}\n{_frames(error)}"
        now = time.monotonic()
        if now >= self._window_ends:
            if self._withheld:
                self.say(f"{self._withheld} more failures were not logged")
            self._window_ends, self._left, self._withheld = now + WINDOW_SECONDS, TRACEBACKS_IN_WINDOW, 0
        if self._left:
            self._left -= 1
            self.say(text)
        else:
            self._withheld += 1

    def say(self, text: str) -> None:
        """Log one line, or more that belong together."""
        with suppress(OSError):  # the keeper that reads it may be gone
            sys.stderr.write(f"runtime {self._model_name}: {_printable(text.rstrip())}\n")
            sys.stderr.flush()


def _printable(text: str) -> str:
    """Leave out control characters: exceptions and logs may quote callers or models."""
    return "".join([character for character in text if character.isprintable() or character in "\n\t"])


def _frames(error: BaseException) -> str:
    """Format the frames of a traceback, without its causes, which may quote the request."""
    return "".join(traceback.format_tb(error.__traceback__, limit=-20))
