"""Which predictions can share one provider call: those whose texts the provider gets as one list.

Its response then has an array with one row for each text: `$.data` of `$.data[*].embedding`, `$.embeddings`, or itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from opensearch_ml_stream.connectors.batching.shared_response import RowPath
from opensearch_ml_stream.connectors.documents import Action, Connector
from opensearch_ml_stream.connectors.predict import post_process, pre_process
from opensearch_ml_stream.connectors.predict.post_process import EmbeddingPath
from opensearch_ml_stream.connectors.rendering.body_edits import INPUT_PROCESSORS


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
    place = post_process.embedding_path(action, parameters)
    if place is None or place.is_one or INPUT_PROCESSORS in parameters:
        return None
    rows = _row_path(place)
    return None if rows is None else Merging(rows, pre_process.step_size(connector.parameters))


def _row_path(place: EmbeddingPath) -> RowPath | None:
    """Return a path of names, with one `[*]` at most, in its parts; None for any other."""
    tokens = place.path.tokens or ()
    stars = [at for at, token in enumerate(tokens) if not isinstance(token, str)]
    if len(stars) > 1 or any(isinstance(token, int) for token in tokens):
        return None
    names = [token for token in tokens if isinstance(token, str)]
    rows = stars[0] if stars else len(names)
    return RowPath(place.path.source, tuple(names[:rows]), tuple(names[rows:]))
