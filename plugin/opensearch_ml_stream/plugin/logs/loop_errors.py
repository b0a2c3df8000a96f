"""Logs what fails in the event loop outside of a request: a task that nobody awaits, a callback."""

import asyncio
import logging
from typing import Any

from opensearch_ml_stream.plugin.logs.flood_filter import KIND

log = logging.getLogger(__name__)


def log_loop_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an error of the loop; for `loop.set_exception_handler`, whose default shows tasks and arguments.

    Those quote the exception's message, or the bytes of a request. Of an exception its type and lines of code are
    shown, of anything else what the loop says of it.
    """
    error: BaseException | None = context.get("exception")
    if error is None:
        log.error("internal error: %s", context["message"])
    else:
        log.error("internal error outside of a request", exc_info=error, extra={KIND: type(error)})
