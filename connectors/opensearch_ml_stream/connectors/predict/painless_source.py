"""Painless source: prepare a connector's pre- or post-process script for OpenSearch, parse its result.

A pre- or post-process function that is not the name of a built-in one is Painless source. The store runs the script
(`Store.run_painless`), and `pre_process` and `post_process` read its string result.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.rendering.template import check_rendered_size, find_placeholders
from opensearch_ml_stream.connectors.syntax import jsontext

_CALLS_ESCAPE = re.compile(r"\bescape\s*\(")
_DEFINES_ESCAPE = re.compile(r"\b(?:String|def|Object)\s+escape\s*\(")

# A Painless string literal has only the escapes \\ and \", so control characters stand in it as they are.
_ESCAPES = (("\\", "\\\\"), ('"', '\\"'), ("\r", "\\r"), ("\n", "\\n"), ("\t", "\\t"), ("\b", "\\b"), ("\f", "\\f"))


@dataclass(frozen=True, slots=True)
class PainlessCall:
    """A script for OpenSearch's template context, whose result is a string. `params` are JSON values."""

    source: str
    params: Mapping[str, Any]


def literal(text: str) -> str:
    """Return the text as a Painless string literal; for text without control characters it is a JSON string too."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


_ESCAPE_FUNCTION = (
    "String escape(def input) { String text = input.toString(); "
    + " ".join(f"text = text.replace({literal(old)}, {literal(new)});" for old, new in _ESCAPES)
    + " return text; } "
)


def fill_parameters(function: str, parameters: Mapping[str, str]) -> str:
    """Replace each `${parameters.x}` in a function's source by the parameter's value as a string literal.

    A placeholder without a value becomes its default, or stays as it is if it has none.
    """
    if "${parameters." not in function:
        return function

    parts: list[str] = []
    start = size = 0
    for match in find_placeholders(function):
        escape, name, default = match.groups()
        value = literal(parameters[name]) if name in parameters else default
        if value is None:
            continue
        parts += (function[start : match.start() + len(escape or "")], value)
        start = match.end()
        size += len(parts[-1])
        check_rendered_size(size, parameters)
    return "".join([*parts, function[start:]])


def define_escape(source: str) -> str:
    """Return the source with a definition of `escape(x)` in front, if it calls that function without defining it."""
    if _CALLS_ESCAPE.search(source) and not _DEFINES_ESCAPE.search(source):
        return _ESCAPE_FUNCTION + source
    return source


def parse_result(text: str, function: str) -> Any:
    """Return the JSON value that a script returned; its strings may hold unescaped control characters.

    InvalidRequest names the `function`, a field of the connector's action, if the result is not JSON.
    """
    try:
        value = json.loads(text, strict=False)
        jsontext.check_depth(value)
    except json.JSONDecodeError as error:
        raise InvalidRequest(f"The connector's {function} did not return JSON: {jsontext.describe(error)}") from None
    except (ValueError, RecursionError):
        raise InvalidRequest(
            f"The connector's {function} returned JSON that cannot be read: a number of too many digits, or more than "
            f"{jsontext.MAX_DEPTH} levels of nesting"
        ) from None
    return value
