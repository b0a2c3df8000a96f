"""Painless functions of a connector: what OpenSearch is asked to run.

A function that is not the name of a built-in one is Painless source. This package only prepares the call; the store
runs it (`Store.run_painless`) and its string result is read by `pre_process` and `post_process`.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest

_PLACEHOLDER = re.compile(r"\$\{parameters\.([^\s{}:]+?)(?::-([^}]*))?\}")
_CALLS_ESCAPE = re.compile(r"\bescape\s*\(")
_DEFINES_ESCAPE = re.compile(r"\b(?:String|def|Object)\s+escape\s*\(")

# A Painless string knows only the escapes \\ and \", so control characters stand in it as they are.
_ESCAPES = (("\\", "\\\\"), ('"', '\\"'), ("\r", "\\r"), ("\n", "\\n"), ("\t", "\\t"), ("\b", "\\b"), ("\f", "\\f"))


@dataclass(frozen=True, slots=True)
class PainlessCall:
    """A script in the template context; its result is a string. `params` are JSON values."""

    source: str
    params: Mapping[str, Any]


def literal(text: str) -> str:
    """The text as a Painless string literal, which for text without control characters is its JSON literal."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


_ESCAPE_FUNCTION = (
    "String escape(def input) { String text = input.toString(); "
    + " ".join(f"text = text.replace({literal(old)}, {literal(new)});" for old, new in _ESCAPES)
    + " return text; } "
)


def fill_parameters(function: str, parameters: Mapping[str, str]) -> str:
    """`${parameters.x}` in a function's text becomes the parameter's string literal; one without a value stays."""
    if "${parameters." not in function:
        return function

    def value(found: re.Match[str]) -> str:
        if found[1] in parameters:
            return literal(parameters[found[1]])
        return found[0] if found[2] is None else found[2]

    return _PLACEHOLDER.sub(value, function)


def with_escape(source: str) -> str:
    """The source with a definition of `escape(x)` in front if it calls that and does not define it."""
    if _CALLS_ESCAPE.search(source) and not _DEFINES_ESCAPE.search(source):
        return _ESCAPE_FUNCTION + source
    return source


def loads_result(text: str, function: str) -> Any:
    """The JSON value that a script returned. Control characters in its strings are taken as they are."""
    try:
        return json.loads(text, strict=False)
    except json.JSONDecodeError as error:
        raise InvalidRequest(
            f"The connector's {function} did not return JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        ) from None
