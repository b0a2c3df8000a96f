"""Python's logging in every process of the server: set up once, one line an event, bounded in a flood.

An exception is shown as its type and the lines of code that it went through. Its message is left out, since it may
quote the request: `KeyError: 'my prompt'`. What happens a thousand times a second is written a few times a minute, and
then counted.
"""

import json
import logging
import re
import sys
import traceback
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from time import monotonic
from types import TracebackType

import orjson

FIELDS = "fields"  # the attribute of a record that holds its fields: `log.info(message, extra={FIELDS: {...}})`
MAX_VALUE_LENGTH = 500
MAX_CAUSES = 10
_PLAIN = re.compile(r"[^\s\"=\\]+")
_Exception = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
KIND = "kind"  # the attribute of a record that says which lines are alike; else its message without values does
WINDOW_SECONDS = 60.0
MAX_LINES_ALIKE = 10
MAX_LINES = 300  # of all kinds: no caller who varies what fails can fill a disk
LOGGER = "opensearch_ml_stream"
ACCESS_LOGGER = f"{LOGGER}.access"


def configure_logging(level: str, line_format: str) -> None:
    """Log on standard error, at a level and in a format that the settings name.

    Libraries log warnings and errors only: at lower levels some write whole requests, with what is secret in them.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JSONFormat() if line_format == "json" else TextFormat())
    handler.addFilter(FloodFilter(unbounded=ACCESS_LOGGER))
    root = logging.getLogger()
    for other in root.handlers[:]:
        if type(other) is logging.StreamHandler:
            root.removeHandler(other)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.getLogger(LOGGER).setLevel(getattr(logging, level.upper()))
    logging.getLogger(ACCESS_LOGGER).setLevel(logging.INFO)  # its own setting turns it on
    logging.getLogger("opensearch").setLevel(logging.ERROR)  # its errors are reported to the client
    logging.captureWarnings(capture=True)


class TextFormat(logging.Formatter):
    """`2026-11-22T01:31:12.136Z WARNING [4711] message name=value name="a value"`, and a traceback below it."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record's line or lines."""
        fields = "".join(f" {name}={_text(value)}" for name, value in _fields(record).items())
        message = _one_line(record.getMessage())
        line = f"{_time(record)} {record.levelname} [{record.process}] {message}{fields}"
        return f"{line}\n{_without_messages(record.exc_info)}" if record.exc_info else line


class JSONFormat(logging.Formatter):
    """One JSON object a line: time, level, process, message, the record's fields, exception."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record's line."""
        line = {
            "time": _time(record),
            "level": record.levelname,
            "process": record.process,
            "message": _cut(record.getMessage()),
            **{name: _cut(value) for name, value in _fields(record).items()},
        }
        if record.exc_info:
            line["exception"] = _without_messages(record.exc_info)
        return _escaped(orjson.dumps(line, default=str).decode())


def _fields(record: logging.LogRecord) -> Mapping[str, object]:
    fields: Mapping[str, object] = getattr(record, FIELDS, {})
    return {name: value for name, value in fields.items() if value is not None}


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _cut(value: object) -> object:
    if isinstance(value, str):
        shown = (
            value[: MAX_VALUE_LENGTH + 1].encode("utf-8", "replace").decode()
        )  # a header or a path may hold half of a surrogate pair
        return shown if len(shown) <= MAX_VALUE_LENGTH else shown[:MAX_VALUE_LENGTH] + "..."
    return value


def _text(value: object) -> str:
    text = value if isinstance(value, str) else orjson.dumps(value, default=str).decode()
    text = str(_cut(text))
    return text if _PLAIN.fullmatch(text) and text.isprintable() else _escaped(orjson.dumps(text).decode())


def _one_line(message: str) -> str:
    """Return a message in which nothing begins a new line, or moves a terminal's cursor."""
    cut = str(_cut(message))
    return cut if cut.isprintable() else _escaped(orjson.dumps(cut).decode()[1:-1])


def _escaped(text: str) -> str:
    """Return JSON text with an escape for what a terminal may obey and JSON may hold: U+009B, U+202E and the like."""
    if text.isprintable():
        return text
    return "".join([one if one.isprintable() else json.dumps(one)[1:-1] for one in text])


def _without_messages(ei: _Exception) -> str:
    parts: list[str] = []
    error = ei[1]
    while error is not None and len(parts) < MAX_CAUSES:  # `raise error from error` is its own cause
        frames = "".join(traceback.format_tb(error.__traceback__))
        parts.append(f"Traceback (most recent call last):\n{frames}{_name(error)}")
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "\nwhich was caused by\n".join(parts)


def _name(error: BaseException) -> str:
    name = f"{type(error).__module__}.{type(error).__qualname__}".removeprefix("builtins.")
    return f"{name}: {error.strerror}" if isinstance(error, OSError) and error.strerror else name


class FloodFilter(logging.Filter):
    """Passes MAX_LINES_ALIKE lines of a kind in WINDOW_SECONDS; the next window's first line has the count of the rest.

    Every line of the logger `unbounded` passes.
    """

    def __init__(self, unbounded: str, clock: Callable[[], float] = monotonic) -> None:
        super().__init__()
        self._unbounded = unbounded
        self._clock = clock
        self._window_end = 0.0
        self._lines: dict[object, int] = {}
        self._left_out = 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the record is written; say in it what was left out before, or will be after."""
        if record.name == self._unbounded:
            return True
        now = self._clock()
        if now >= self._window_end:
            self._window_end = now + WINDOW_SECONDS
            self._lines.clear()
        kind = (record.name, record.levelno, getattr(record, KIND, record.msg))
        alike = self._lines.get(kind, 0)
        if alike >= MAX_LINES_ALIKE or sum(self._lines.values()) >= MAX_LINES:
            self._left_out += 1
            return False
        self._lines[kind] = alike + 1
        fields = dict(getattr(record, FIELDS, {}))
        if self._left_out:
            fields["lines_left_out_before"], self._left_out = self._left_out, 0
        if alike + 1 == MAX_LINES_ALIKE:
            fields["lines_like_this"] = f"left out for up to {WINDOW_SECONDS:g} s"
        setattr(record, FIELDS, fields)
        return True
