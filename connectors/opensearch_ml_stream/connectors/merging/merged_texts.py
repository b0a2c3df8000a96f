"""Which predictions can share one provider call: those whose texts the provider gets as one list.

Its response then has an array with one row for each text: `$.data` of `$.data[*].embedding`, `$.embeddings`, or itself.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from opensearch_ml_stream.connectors.documents import Action, Connector
from opensearch_ml_stream.connectors.merging.shared_response import RowPath
from opensearch_ml_stream.connectors.predict import post_process, pre_process
from opensearch_ml_stream.connectors.rendering.body_edits import INPUT_PROCESSORS

_PATH = re.compile(r"\$((?:\.\w+)*)(?:\[\*\]((?:\.\w+)*))?")
_MAX_PATHS = 256  # that are kept in parts; a caller may send any `response_filter`


@dataclass(frozen=True, slots=True)
class Merging:
    """How texts are merged: at most `max_texts` in a call, if that is not None; their embeddings are at `rows`."""

    rows: RowPath
    max_texts: int | None


def find_merging(connector: Connector, action: Action, own: Mapping[str, str]) -> Merging | None:
    """Return how texts of requests with the parameters `own` are merged, None if each request needs its own call.

    InvalidRequest for a step size that is no number.
    """
    parameters = {**connector.parameters, **own}
    name = pre_process.find_list_parameter(action, connector.parameters, own)
    if name is None or name in own or f"${{parameters.{name}" not in (action.request_body or ""):
        return None  # the provider does not get the texts, or not as one list
    path = post_process.find_row_path(action, parameters)
    if path is None or INPUT_PROCESSORS in parameters:
        return None
    rows = _read_row_path(path)
    return None if rows is None else Merging(rows, pre_process.step_size(connector.parameters))


@lru_cache(_MAX_PATHS)
def _read_row_path(path: str) -> RowPath | None:
    """Return a JSONPath of names and at most one `[*]` in its parts, None for any other."""
    match = _PATH.fullmatch(path)
    if match is None:
        return None
    to_rows, in_row = (tuple((names or "").split(".")[1:]) for names in match.groups())
    return RowPath(path, to_rows, in_row)
