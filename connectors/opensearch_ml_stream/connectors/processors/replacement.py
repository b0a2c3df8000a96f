r"""Replace what a regular expression matches, with `$1` for a group and `\` before a literal character.

The grammar of replacements is that of Java's java.util.regex.Matcher.appendReplacement, as in ML Commons.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.syntax.regex import Regex
from opensearch_ml_stream.connectors.syntax.work_limit import WorkLimit

_PART = re.compile(r"\\(.)|\$(\d)|([^\\$]+)|(.)", re.DOTALL)

Replacement = Callable[[Any, WorkLimit], str]
"""Gives the text that replaces a match."""


def compile_replacement(text: str, groups: int, config_path: str) -> Replacement:
    r"""Return the function that gives a match's replacement, for a pattern with this number of groups.

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
