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
from opensearch_ml_stream.connectors.rendering.template import PLACEHOLDER_PATTERN
from opensearch_ml_stream.connectors.syntax import jsontext

_PLACEHOLDER = re.compile(PLACEHOLDER_PATTERN)
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

    def fill(match: re.Match[str]) -> str:
        name, default = match.groups()
        if name in parameters:
            return literal(parameters[name])
        return match[0] if default is None else default

    return _PLACEHOLDER.sub(fill, function)


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
        return json.loads(text, strict=False)
    except json.JSONDecodeError as error:
        raise InvalidRequest(f"The connector's {function} did not return JSON: {jsontext.describe(error)}") from None
