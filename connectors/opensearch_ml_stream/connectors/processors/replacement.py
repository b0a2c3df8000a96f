"""Replacement text of `regex_replace`, in Java's grammar: `$1` is a group, `\\` makes the next character plain."""

import re
from collections.abc import Callable
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest

_PART = re.compile(r"\\(.)|\$(\d)|([^\\$]+)|(.)", re.DOTALL)


def compile_replacement(text: str, groups: int, place: str) -> Callable[[Any], str]:
    """What a match is replaced by; InvalidRequest for a group that the pattern lacks and for a lone `$` or `\\`."""
    parts: list[str | int] = []
    for found in _PART.finditer(text):
        if found[4] is not None:
            raise InvalidRequest(f"{place} has a lone [{found[4]}]; write \\{found[4]} for the character itself")
        if found[2] is None:
            parts.append(found[1] or found[3])
        elif int(found[2]) > groups:
            raise InvalidRequest(f"{place} names group ${found[2]}, but the pattern has {groups}")
        else:
            parts.append(int(found[2]))
    return lambda match: "".join(part if isinstance(part, str) else match.group(part) or "" for part in parts)
