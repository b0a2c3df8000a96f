"""Predict responses as JSON: embeddings are written as the provider wrote them, without making their numbers.

For whole predictions whose response nothing else reads. The JSON is equal by value to that of `post_process`'s tensors,
and equal byte for byte except for the numbers of an embedding: `1e-05` stays, where parsed and printed it may change.
"""

from collections.abc import Sequence

from opensearch_ml_stream.connectors.predict.embedding_arrays import CutBody, cut_arrays, write_compactly
from opensearch_ml_stream.connectors.predict.post_process import EmbeddingPath
from opensearch_ml_stream.connectors.predict.tensors import Tensor
from opensearch_ml_stream.connectors.syntax.compact_json import to_json

Json = list[bytes]
"""JSON in parts, which are joined once: an embedding is long, and each time it is copied costs."""


def encode_tensors(outputs: Sequence[list[Tensor]]) -> bytes:
    """Return `{"inference_results": [{"output": [...], "status_code": 200}, ...]}` of these outputs."""
    return to_json({"inference_results": [{"output": output, "status_code": 200} for output in outputs]})


def join_outputs(outputs: Sequence[Json]) -> bytes:
    """Return the response of `encode_tensors`, of outputs that are JSON."""
    parts = [b'{"inference_results":']
    separator = b'[{"output":'
    for output in outputs:
        parts.append(separator)
        parts += output
        separator = b',"status_code":200},{"output":'
    parts.append(b',"status_code":200}]}')
    return b"".join(parts)


def encode_embeddings(place: EmbeddingPath, body: bytes, inputs: int | None = None) -> Json | None:
    """Return the output of a provider's response with embeddings; None if `post_process` has to read it.

    It has so many `inputs`, if that is known. UpstreamError for rows that are numbered wrongly.
    """
    cut = cut_arrays(body)
    vectors = None if cut is None else _find_vectors(place, cut)
    if vectors is None or inputs not in (None, len(vectors)):
        return None
    head = b'{"name":"sentence_embedding","data_type":"%b","shape":[' % place.data_type.encode()
    parts: Json = []
    separator = b"["
    for vector in vectors:
        parts += (separator, head, b'%d],"data":' % (vector.count(b",") + 1), write_compactly(vector))
        separator = b"},"
    parts.append(b"}]")
    return parts


def _find_vectors(place: EmbeddingPath, cut: CutBody) -> list[bytes] | None:
    """Return the arrays at the path, None if anything else is there.

    A path that leads into an array would find something else in its mark. It cannot if it has only names, nor if it
    ends at each of the arrays.
    """
    selected = place.read(cut.frame)
    values = [selected] if place.is_one else selected
    if not isinstance(values, list) or not values:
        return None
    vectors = [vector for value in values if (vector := cut.array(value)) is not None]
    if len(vectors) != len(values) or (len(vectors) != len(cut.arrays) and not place.has_only_names):
        return None
    return vectors
