"""Processors that work on text: `to_string`, `regex_replace`, `regex_capture`, `extract_json`."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.processors.processing import (
    Config,
    Processing,
    Processor,
    default_value,
    required_string,
)
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.connectors.syntax.regex import Regex, compile_regex
from opensearch_ml_stream.connectors.syntax.work_limit import WorkLimit

_PART = re.compile(r"\\(.)|\$(\d)|([^\\$]+)|(.)", re.DOTALL)

Replacement = Callable[[Any, WorkLimit], str]
"""Gives the text that replaces a match."""


def compile_replacement(text: str, groups: int, config_path: str) -> Replacement:
    r"""Return the function that gives a match's replacement, for a pattern with this number of groups.

    `$1` stands for a group, and a `\` before a character for the character itself: the grammar is that of Java's
    java.util.regex.Matcher.appendReplacement, as in ML Commons.

    InvalidRequest, beginning with `config_path`, for a group that the pattern lacks and for a lone `$` or `\`.
    """
    parts: list[str | int] = []
    for part in _PART.finditer(text):
        if part[4] is not None:
            raise InvalidRequest(f"{config_path} has a lone [{part[4]}]; write \\{part[4]} for the character itself")
        if part[2] is None:
            parts.append(part[1] or part[3])
        elif int(part[2]) > groups:
            raise InvalidRequest(f"{config_path} names group ${part[2]}, but the pattern has {groups}")
        else:
            parts.append(int(part[2]))

    def pieces(match: Any, work: WorkLimit) -> Iterator[str]:
        for part in parts:
            piece = part if isinstance(part, str) else match.group(part) or ""
            work.spend_on_text(piece)
            yield piece

    return lambda match, work: "".join(pieces(match, work))


def replace(regex: Regex, replacement: Replacement, text: str, work: WorkLimit, *, only_first: bool) -> str:
    """Return the text with each match, or the first one, replaced. The limit's error if that grows too long."""
    pieces: list[str] = []
    end = 0
    for match in regex.finditer(text, work.spend):
        pieces += (text[end : match.start()], replacement(match, work))
        end = match.end()
        if only_first:
            break
    return "".join([*pieces, text[end:]])


_MAX_GROUP_DIGITS = 4


def to_string(config: Config, config_path: str) -> Processor:
    """Compile `to_string`, with `escape_json`."""
    if config.get("escape_json") is not True:
        return lambda value, processing: processing.text(value)

    def escape(value: Any, processing: Processing) -> str:
        escaped = jsontext.escape(processing.text(value))
        processing.work.spend_on_text(escaped)
        return escaped

    return escape


def compile_pattern(pattern: str) -> Regex:
    """Compile a processor's `pattern`."""
    return compile_regex(pattern, dot_all=True)


def regex_replace(config: Config, config_path: str) -> Processor:
    """Compile `regex_replace`, with `pattern`, `replacement` and `replace_all`."""
    regex = compile_pattern(required_string(config, "pattern", config_path))
    replacement = compile_replacement(str(config.get("replacement", "")), regex.groups, f"{config_path}.replacement")
    only_first = config.get("replace_all", True) is not True
    return lambda value, processing: replace(
        regex, replacement, processing.text(value), processing.work, only_first=only_first
    )


def regex_capture(config: Config, config_path: str) -> Processor:
    """Compile `regex_capture`, with `pattern` and `groups`."""
    regex = compile_pattern(required_string(config, "pattern", config_path))
    groups = [group for group in _groups(config.get("groups", "1"), config_path) if group <= regex.groups]

    def capture(value: Any, processing: Processing) -> Any:
        text = processing.text(value)
        match = next(regex.finditer(text, processing.work.spend), None)
        if match is None or not groups:
            return value
        captured: list[str | None] = []
        for group in groups:
            captured.append(match.group(group))
            processing.work.spend_on_text(captured[-1] or "")
        return captured[0] if len(captured) == 1 else captured

    return capture


def _groups(config: Any, config_path: str) -> list[int]:
    """Return the group numbers of `1`, `"1"`, `[1, 2]` or `"[1, 2]"`."""
    parts = config if isinstance(config, list) else str(config).strip().removeprefix("[").removesuffix("]").split(",")
    numbers = [str(part).strip() for part in parts]
    if not numbers or not all(number.isdecimal() and len(number) <= _MAX_GROUP_DIGITS for number in numbers):
        raise InvalidRequest(f"{config_path}.groups must be a number or an array of numbers such as '[1,2,3]'")
    return [int(number) for number in numbers]


def extract_json(config: Config, config_path: str) -> Processor:
    """Compile `extract_json`, with `extract_type` and `default`."""
    openings_by_type = {"auto": "{[", "object": "{", "array": "["}
    openings = openings_by_type.get(str(config.get("extract_type", "auto")).lower())
    if openings is None:
        raise InvalidRequest(f"{config_path}.extract_type must be 'auto', 'object', or 'array'")
    default = default_value(config)
    decoder = json.JSONDecoder()

    def extract(value: Any, processing: Processing) -> Any:
        if not isinstance(value, str):
            return value
        processing.work.spend_on_json(value)
        start = min((at for opening in openings if (at := value.find(opening)) >= 0), default=None)
        if start is not None:
            try:
                return decoder.raw_decode(value, start)[0]
            except (ValueError, RecursionError):  # no JSON, thousands of digits, thousands of brackets
                pass
        return default(value, processing)

    return extract
