"""Painless: prepare a connector's pre- or post-process script for OpenSearch, and read its result.

A pre- or post-process function that is not the name of a built-in one is Painless source. The store runs the script
(`Store.run_painless`), and `pre_process` and `post_process` read its string result. Several runs of a script can be
combined into one.
"""

import json
import re
from collections.abc import Mapping, Sequence
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


_HEADING = re.compile(r"\s*[A-Za-z_][\w.]*(?:<[^>{}]*>)?(?:\[\])*\s+[A-Za-z_]\w*\s*\([^(){}]*\)\s*\{")
_TOKEN = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[{}]""", re.DOTALL)
_RESULT = re.compile(rb"(?:(?:\d\0){1,12}:\0|-\0)")

_RUN_ALL = (
    "StringBuilder mlResults = new StringBuilder(); "
    "for (def mlInput : params.inputs) { def mlResult = mlOne(mlInput); "
    "if (mlResult == null) { mlResults.append('-'); } else { String mlText = mlResult.toString(); "
    "mlResults.append(mlText.length()).append(':').append(mlText); } } "
    "return mlResults.toString();"
)


def combine_calls(source: str, inputs: Sequence[Mapping[str, Any]]) -> PainlessCall:
    """Return the call that runs `source` once for each input, which are the `params` of its single runs.

    Leading function definitions are kept; all code after them is wrapped in a new function, called once per input. The
    results come back as one string: each is its length in UTF-16 units, a colon and the text, or `-` for null.
    OpenSearch does not compile a source whose wrapped code cannot be the body of a function, such as one that returns
    only on some branches; the caller then runs it once for each input.
    """
    functions, body = _split(source)
    return PainlessCall(f"{functions} def mlOne(def params) {{ {body}\n}} {_RUN_ALL}", {"inputs": list(inputs)})


def split_results(text: str | None, count: int) -> list[str | None]:
    """Return the result of each input from what a combined call returned for `count` inputs.

    InvalidRequest if the text is not of that form or holds another number of results.
    """
    units = (text or "").encode("utf-16-le", "surrogatepass")
    results: list[str | None] = []
    position = 0
    while match := _RESULT.match(units, position):
        position = match.end()
        if match[0] == b"-\0":
            results.append(None)
            continue
        end = position + 2 * int(match[0].decode("utf-16-le")[:-1])
        results.append(units[position:end].decode("utf-16-le", "surrogatepass"))
        position = end
    if len(results) != count or position != len(units):
        raise InvalidRequest("Painless script: its result for several inputs cannot be read")
    return results


def _split(source: str) -> tuple[str, str]:
    """Return the functions at the beginning of the source, and the rest of it."""
    end = 0
    while heading := _HEADING.match(source, end):
        closing = _closing(source, heading.end())
        if closing is None:
            break
        end = closing
    return source[:end], source[end:]


def _closing(source: str, position: int) -> int | None:
    """Return the position after the brace that closes the one before `position`, None if none does.

    Braces in strings and comments do not count.
    """
    depth = 1
    for token in _TOKEN.finditer(source, position):
        depth += {"{": 1, "}": -1}.get(token[0], 0)
        if depth == 0:
            return token.end()
    return None
