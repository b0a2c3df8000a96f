"""Lines of the log: text and JSON with the same fields, and nothing in them that a terminal or a reader trips over."""

import json
import logging
import sys
from typing import Any

import pytest

from opensearch_ml_stream.plugin.logs.configuration import FIELDS, MAX_CAUSES, MAX_VALUE_LENGTH, JSONFormat, TextFormat

CREATED = 1795311072.136


def record(message: str = "request failed", *args: object, **fields: object) -> logging.LogRecord:
    made = logging.LogRecord("opensearch_ml_stream", logging.WARNING, __file__, 1, message, args, None)
    made.created, made.process = CREATED, 4711
    setattr(made, FIELDS, fields)
    return made


def json_line(made: logging.LogRecord) -> dict[str, Any]:
    line: dict[str, Any] = json.loads(JSONFormat().format(made))
    return line


def failed(error: BaseException) -> logging.LogRecord:
    made = record("internal error")
    try:
        raise error
    except (KeyError, ValueError):
        made.exc_info = sys.exc_info()
    return made


def test_a_line_of_text_has_time_level_process_message_and_fields() -> None:
    made = record("worker %s serves", 17, model="m1", status=424, chunks=None, duration_ms=1.5)
    assert TextFormat().format(made) == (
        "2026-11-22T01:31:12.136Z WARNING [4711] worker 17 serves model=m1 status=424 duration_ms=1.5"
    )


def test_json_has_the_same_names() -> None:
    assert json_line(record("worker %s serves", 17, model="m1", status=424, chunks=None)) == {
        "time": "2026-11-22T01:31:12.136Z",
        "level": "WARNING",
        "process": 4711,
        "message": "worker 17 serves",
        "model": "m1",
        "status": 424,
    }


@pytest.mark.parametrize("text", ["a b", 'say "a"', "a=b", "", "a\nb", "\x1b[31m", "a\u2028b", "\\"])
def test_a_value_that_is_not_plain_is_quoted_as_json(text: str) -> None:
    line = TextFormat().format(record(reason=text))
    assert line.endswith(f" reason={json.dumps(text, ensure_ascii=False)}") or "\\u" in line
    assert json.loads(line.partition("reason=")[2]) == text
    assert "\n" not in line and "\x1b" not in line


@pytest.mark.parametrize(
    "text", ["\x9b2J", "a\x7f", "\u202egpj.exe", "\u200b", "\u2028", "\U000e0041", "\x85\n\x1b[2J"]
)
@pytest.mark.parametrize("form", [TextFormat(), JSONFormat()])
def test_nothing_that_a_terminal_may_obey_is_in_a_line(form: logging.Formatter, text: str) -> None:
    line = form.format(record(text, reason=text, reasons=[text, f"a {text}"]))
    assert line.isprintable()
    if isinstance(form, JSONFormat):
        read = json.loads(line)
        assert (read["message"], read["reason"], read["reasons"]) == (text, text, [text, f"a {text}"])


def test_a_message_cannot_begin_a_line_of_its_own() -> None:
    assert "\n" not in TextFormat().format(record("a\n2026-11-22 ERROR forged"))


@pytest.mark.parametrize("form", [TextFormat(), JSONFormat()])
def test_long_values_are_cut_and_half_characters_replaced(form: logging.Formatter) -> None:
    line = form.format(record(reason="x" * 10_000, path="/\udc80"))
    assert len(line) < MAX_VALUE_LENGTH + 250
    assert "x" * MAX_VALUE_LENGTH + "..." in line and "/?" in line


@pytest.mark.parametrize("form", [TextFormat(), JSONFormat()])
def test_a_traceback_shows_the_code_and_the_type_but_not_the_message(form: logging.Formatter) -> None:
    line = form.format(failed(KeyError("my secret prompt")))
    assert "test_line_format.py" in line and "KeyError" in line and "raise error" in line
    assert "secret" not in line


def test_causes_are_shown_too_and_the_systems_own_words_for_its_errors() -> None:
    error = ValueError("secret")
    error.__cause__ = OSError(28, "No space left on device")
    line = TextFormat().format(failed(error))
    assert line.splitlines()[-1] == "OSError: No space left on device"
    assert "which was caused by" in line and "secret" not in line
    assert "exception" in json_line(failed(error))


@pytest.mark.parametrize("form", [TextFormat(), JSONFormat()])
def test_a_long_message_is_cut_and_its_half_characters_are_replaced(form: logging.Formatter) -> None:
    line = form.format(record("%s", "/\udc80" + "x" * 10_000))
    assert "/?" in line and "x..." in line and len(line) < MAX_VALUE_LENGTH + 250


def test_an_error_that_is_its_own_cause_is_shown_a_bounded_number_of_times() -> None:
    error = ValueError("secret")
    error.__cause__ = error
    assert TextFormat().format(failed(error)).count("which was caused by") == MAX_CAUSES - 1
