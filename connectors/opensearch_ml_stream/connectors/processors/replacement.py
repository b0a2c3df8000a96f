r"""Replacement strings of `regex_replace`: `$1` is a group, `\` escapes the next character.

The grammar is that of Java's java.util.regex.Matcher.appendReplacement, as in ML Commons.
"""

import re
from collections.abc import Callable
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest

_PART = re.compile(r"\\(.)|\$(\d)|([^\\$]+)|(.)", re.DOTALL)


def compile_replacement(text: str, groups: int, config_path: str) -> Callable[[Any], str]:
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
    return lambda match: "".join(part if isinstance(part, str) else match.group(part) or "" for part in parts)
