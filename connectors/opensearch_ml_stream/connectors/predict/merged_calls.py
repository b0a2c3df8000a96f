"""Merge predictions of texts into one provider call, and split its response into theirs.

Predictions can share a call where the provider gets their texts as one list. Its response then has an array with one
row for each text: `$.data` of `$.data[*].embedding`, `$.embeddings`, or itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import orjson

from opensearch_ml_stream.connectors.documents import Action, Connector
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.predict import post_process, pre_process
from opensearch_ml_stream.connectors.predict.input_order import put_in_order
from opensearch_ml_stream.connectors.predict.post_process import EmbeddingPath, parse_body
from opensearch_ml_stream.connectors.rendering.body_edits import INPUT_PROCESSORS
from opensearch_ml_stream.connectors.response_usage import read_counts

MAX_OTHER_ARRAYS = 100  # beside the embeddings, before the body is parsed whole: each takes a turn of a Python loop


@dataclass(frozen=True, slots=True)
class RowPath:
    """Where a response has its embeddings: `to_rows` are the names to the array of rows, `in_row` those in each row."""

    path: str
    to_rows: tuple[str, ...]
    in_row: tuple[str, ...]


def split_response(body: bytes, path: RowPath, requests: Sequence[Sequence[str]]) -> list[bytes]:
    """Return the body for each request: its own rows, and its share of the usage.

    Nothing else of the response is in them: it may be about the texts of others, as Cohere's `texts` are. `requests`
    are the texts of each, in the order in which they were sent. Usage is shared by characters. UpstreamError if the
    response has not one row for each text, or numbers them wrongly.
    """
    ends = list(accumulate(map(len, requests), initial=0))
    response, rows = _parse(body, path, ends[-1])
    if rows is None or len(rows) != ends[-1]:
        has = "no array" if rows is None else f"{len(rows)} embeddings"
        raise UpstreamError(
            f"The provider's response to {ends[-1]} texts, which _sidecar.batching has merged from {len(requests)} "
            f"requests, has {has} at [{path.path}]"
        )
    index = put_in_order(rows, path.path)
    counts = read_counts(response) if isinstance(response, dict) else {}
    usages = _share(counts, requests)
    return [
        _body(rows[start:end], index, path, usage) for (start, end), usage in zip(pairwise(ends), usages, strict=True)
    ]


def _body(rows: list[Any], index: str | None, path: RowPath, usage: Mapping[str, int]) -> bytes:
    """Return a response with these rows, numbered anew if the provider has numbered them in `index`."""
    if index is not None:
        for position, row in enumerate(rows):
            row[index] = position
    value: Any = rows
    for name in reversed(path.to_rows):
        value = {name: value}
    return orjson.dumps({"usage": usage, **value} if usage and path.to_rows else value)


def _share(counts: Mapping[str, int], requests: Sequence[Sequence[str]]) -> list[dict[str, int]]:
    """Return the share of each request in the counts, by characters; all shares together are the whole."""
    ends = list(accumulate((max(sum(map(len, texts)), 1) for texts in requests), initial=0))
    total = ends[-1]
    return [
        {name: count * end // total - count * start // total for name, count in counts.items()}
        for start, end in pairwise(ends)
    ]


def _parse(body: bytes, path: RowPath, texts: int) -> tuple[Any, list[Any] | None]:
    """Return the response to so many texts and its array of rows, None without one. UpstreamError if it is not JSON.

    The numbers of an embedding are never parsed: `[0.1,-0.2]` becomes `[7]` before, and is put in its place again after
    that, if it is the embedding of row 7. Where anything else in the response looks like one, all is parsed.
    """
    skeleton: list[bytes] = []
    vectors: list[bytes] = []
    rest = 0  # where what is not in the skeleton yet begins
    position = 0
    for _ in range(texts + MAX_OTHER_ARRAYS):
        if (end := body.find(b"]", position)) < 0:
            break
        start = body.rfind(b"[", position, end)
        after = start + 1
        if 0 < after < end and body.find(b'"', after, end) < 0:
            skeleton += body[rest:after], b"%d" % len(vectors)
            vectors.append(body[start : end + 1])
            rest = end
        position = end + 1
    skeleton.append(body[rest:])
    try:
        response = parse_body(b"".join(skeleton))
    except UpstreamError:
        response = None
    rows = _find_rows(response, path)
    if rows is None or len(rows) != len(vectors) or not _put_back(rows, path.in_row, vectors):
        response = parse_body(body)
        rows = _find_rows(response, path)
    return response, rows


def _put_back(rows: list[Any], in_row: Sequence[str], vectors: Sequence[bytes]) -> bool:
    """Put each vector into the row that has its number; return False if a row has another value there."""
    holder: Any
    for number, row in enumerate(rows):
        vector = orjson.Fragment(vectors[number])
        value, holder = row, None
        for name in in_row:
            if not isinstance(value, dict):
                return False
            holder, value = value, value.get(name)
        if value != [number]:
            return False
        if holder is None:
            rows[number] = vector
        else:
            holder[in_row[-1]] = vector
    return True


def _find_rows(response: Any, path: RowPath) -> list[Any] | None:
    value = response
    for name in path.to_rows:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, list) else None


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
