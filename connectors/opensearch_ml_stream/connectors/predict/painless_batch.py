"""One script run for many inputs: a Painless source becomes one that runs its body for each of `params.inputs`.

The functions that the source begins with stay functions; the rest becomes the body of one more. Its results come back
as one text: each is its length in UTF-16 units, a colon and the text, or `-` for null. OpenSearch refuses to compile
what cannot be a function's body, such as one that returns on some of its ways only; that source is run alone.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.predict.painless import PainlessCall

_HEADING = re.compile(r"\s*[A-Za-z_][\w.]*(?:<[^>{}]*>)?(?:\[\])*\s+[A-Za-z_]\w*\s*\([^(){}]*\)\s*\{")
_TOKEN = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[{}]""", re.DOTALL)
_RESULT = re.compile(rb"(?:(?:\d\0)+:\0|-\0)")

_RUN_ALL = (
    "StringBuilder mlResults = new StringBuilder(); "
    "for (def mlInput : params.inputs) { def mlResult = mlOne(mlInput); "
    "if (mlResult == null) { mlResults.append('-'); } else { String mlText = mlResult.toString(); "
    "mlResults.append(mlText.length()).append(':').append(mlText); } } "
    "return mlResults.toString();"
)


def for_all(source: str, inputs: Sequence[Mapping[str, Any]]) -> PainlessCall:
    """The call that runs `source` once for each input."""
    functions, body = _split(source)
    return PainlessCall(f"{functions} def mlOne(def params) {{ {body}\n}} {_RUN_ALL}", {"inputs": list(inputs)})


def results(text: str | None, count: int) -> list[str | None]:
    """The result for each input; InvalidRequest if the text is not what `for_all`'s call returns for so many."""
    units = (text or "").encode("utf-16-le", "surrogatepass")
    found: list[str | None] = []
    position = 0
    while match := _RESULT.match(units, position):
        position = match.end()
        if match[0] == b"-\0":
            found.append(None)
            continue
        end = position + 2 * int(match[0].decode("utf-16-le")[:-1])
        found.append(units[position:end].decode("utf-16-le", "surrogatepass"))
        position = end
    if len(found) != count or position != len(units):
        raise InvalidRequest("Painless script: its result for several inputs cannot be read")
    return found


def _split(source: str) -> tuple[str, str]:
    """The functions at the beginning, and what is left."""
    end = 0
    while heading := _HEADING.match(source, end):
        closing = _closing(source, heading.end())
        if closing is None:
            break
        end = closing
    return source[:end], source[end:]


def _closing(source: str, position: int) -> int | None:
    """Behind the brace that closes the one before `position`; braces in strings and comments do not count."""
    depth = 1
    for token in _TOKEN.finditer(source, position):
        depth += {"{": 1, "}": -1}.get(token[0], 0)
        if depth == 0:
            return token.end()
    return None
