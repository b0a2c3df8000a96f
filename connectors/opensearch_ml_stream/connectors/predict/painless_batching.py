"""Painless batching: combine many runs of a script into one that runs it for each of `params.inputs`.

Leading function definitions are kept; all code after them is wrapped in a new function, called once per input. The
results come back as one string: each is its length in UTF-16 units, a colon and the text, or `-` for null. OpenSearch
does not compile a source whose wrapped code cannot be the body of a function, such as one that returns only on some
branches; the caller then runs it once for each input.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.predict.painless_source import PainlessCall

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
    """Return the call that runs `source` once for each input, which are the `params` of its single runs."""
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
