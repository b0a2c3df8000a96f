"""Regular expressions that users write, compiled by RE2: its time is linear in the text, whatever the expression."""

from functools import lru_cache
from typing import Any

import re2

from opensearch_ml_stream.connectors.errors import InvalidRequest

MAX_PATTERN_CHARS = 10_000  # patterns come from callers and are kept compiled


def compile_regex(pattern: str, *, dot_all: bool = False, ignore_case: bool = False) -> Any:
    """Compile a pattern with RE2. InvalidRequest if RE2 does not take it, as for look-around and back-references."""
    if len(pattern) > MAX_PATTERN_CHARS:
        raise InvalidRequest(
            f"A regular expression may have {MAX_PATTERN_CHARS} characters; this one has {len(pattern)}"
        )
    return _compile(pattern, dot_all, ignore_case)


@lru_cache(maxsize=512)
def _compile(pattern: str, dot_all: bool, ignore_case: bool) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.dot_nl = dot_all
    options.case_sensitive = not ignore_case
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0].decode() if error.args and isinstance(error.args[0], bytes) else str(error)
        raise InvalidRequest(f"The regular expression [{pattern}] cannot be used: {reason}") from None
