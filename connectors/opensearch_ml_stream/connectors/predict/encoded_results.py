"""Predict responses as JSON: embeddings are written as the provider wrote them, without making their numbers.

For whole predictions whose response nothing else reads. The JSON is equal by value to that of `post_process`'s tensors,
and equal byte for byte except for the numbers of an embedding: `1e-05` stays, where parsed and printed it may change.
"""

import json
from collections.abc import Sequence
from typing import Any

import orjson

from opensearch_ml_stream.connectors.predict.number_arrays import CutBody, cut_arrays, write_compactly
from opensearch_ml_stream.connectors.predict.post_process import EmbeddingPath
from opensearch_ml_stream.connectors.predict.tensors import Tensor

Output = bytes | list[Tensor]
"""The `output` of one provider call: JSON, or its tensors."""


def encode(value: Any) -> bytes:
    """Return a response as compact JSON."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:  # a number of more than 64 bits, half of a surrogate pair
        return json.dumps(value).encode()


def encode_results(outputs: Sequence[Output]) -> bytes:
    """Return `{"inference_results": [{"output": [...], "status_code": 200}, ...]}` of these outputs."""
    if not any(isinstance(output, bytes) for output in outputs):
        return encode({"inference_results": [{"output": output, "status_code": 200} for output in outputs]})
    results = [
        b'{"output":%b,"status_code":200}' % (output if isinstance(output, bytes) else encode(output))
        for output in outputs
    ]
    return b'{"inference_results":[%b]}' % b",".join(results)


def encode_embeddings(place: EmbeddingPath, body: bytes) -> bytes | None:
    """Return the output of a provider's response with embeddings; None if `post_process` has to read it."""
    cut = cut_arrays(body)
    if cut is None:
        return None
    vectors = _find_vectors(place, cut)
    return None if vectors is None else b"[%b]" % b",".join([_tensor(place.data_type, vector) for vector in vectors])


def _find_vectors(place: EmbeddingPath, cut: CutBody) -> list[bytes] | None:
    """Return the arrays at the path, None if anything else is there.

    A path that leads into an array would find something else in its mark. It cannot if it has only names, nor if it
    ends at each of the arrays.
    """
    selected = place.path.read(cut.frame)
    values = [selected] if place.is_one else selected
    if not isinstance(values, list) or not values:
        return None
    vectors = [vector for value in values if (vector := cut.array(value)) is not None]
    if len(vectors) != len(values) or (len(vectors) != len(cut.arrays) and not place.has_only_names):
        return None
    return vectors


def _tensor(data_type: str, vector: bytes) -> bytes:
    """Return the JSON of `tensors.embedding`."""
    return b'{"name":"sentence_embedding","data_type":"%b","shape":[%d],"data":%b}' % (
        data_type.encode(),
        vector.count(b",") + 1,
        write_compactly(vector),
    )
