"""Predict responses as JSON: embeddings are copied as the provider wrote them, without parsing their numbers.

This is for whole predictions whose response nothing else reads. The JSON is equal by value to that of the tensors of
`post_process`, and equal byte for byte except for the numbers of an embedding: `1e-05` stays, where parsed and printed
it may change.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import orjson
import re2

from opensearch_ml_stream.connectors.predict.post_process import EmbeddingPath
from opensearch_ml_stream.connectors.predict.tensors import Tensor
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.connectors.syntax.jsontext import to_json

MIN_ARRAY_BYTES = 128  # shorter ones stay in the frame: parsing them costs no more than cutting them out
MAX_ARRAYS = 2_048  # of a body: OpenAI's and Cohere's limits of texts in a call are lower
MAX_SHORT_ARRAYS = 100  # met before the body is given up: each takes a turn of a Python loop

_MARK = "\0"
_ARRAY_OF_NUMBERS = re.compile(rb"\[[ \t\n\r]*+[-0-9]")
_NOT_NUMBERS = (b'"', b"{", b"E")
_BLANKS = b" \n\r\t"
_GROWING_EXPONENT = re2.compile(rb"e[^-]")
# A number beyond 1.8e308 without an exponent has more than 308 digits in a row, so 44 of every seventh byte are digits.
_DIGITS_OF_INFINITY = 308
_STRIDE = 7
_DIGITS_AS_ZEROS = bytes.maketrans(b"123456789", b"000000000")

_json_checker = msgspec.json.Decoder(msgspec.Raw)  # parses strictly but makes no values, in a third of orjson's time


@dataclass(frozen=True, slots=True)
class CutBody:
    """A JSON body without its long arrays of numbers: the rest's value with marks, and the arrays' text."""

    frame: Any
    arrays: list[bytes]

    def array(self, value: object) -> bytes | None:
        """Return the array whose mark a value of the frame is, None for any other value."""
        if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str) and value[0].startswith(_MARK):
            return self.arrays[int(value[0][1:])]
        return None


def cut_arrays(body: bytes) -> CutBody | None:
    """Cut the long arrays of numbers out of a body; None if it has none, or has to be parsed whole.

    A provider's response with an embedding is a few names around thousands of numbers, all of which would be parsed
    only to be printed again. Here each long array is checked to be JSON and replaced by a mark; what is left, the
    *frame*, is small and is parsed as any JSON.

    The body has to be parsed where the result cannot be proved equal to that of parsing it, broken bodies included. The
    proof, which a property test checks:

    - a cut array is JSON by itself, and so is the frame with a mark, another array, in its place: so the whole is JSON;
    - no array is cut within a string, for the mark's quotes and escape would break the frame, and no mark is one of the
      provider's, since a body with a backslash is not cut;
    - an array has no strings and no objects in it, so that each of its commas separates two items;
    - each number in it is finite, since orjson refuses one that is not.
    """
    if b"\\" in body:
        return None
    parts: list[bytes] = []
    arrays: list[bytes] = []
    position = copied = short = 0
    while (begin := _ARRAY_OF_NUMBERS.search(body, position)) is not None:
        start = begin.start()
        position = body.find(b"]", start) + 1
        if position - start < MIN_ARRAY_BYTES:
            short += 1
            if short > MAX_SHORT_ARRAYS or not position:
                return None
            continue
        array = body[start:position]
        if not _is_of_finite_numbers(array) or len(arrays) == MAX_ARRAYS:
            return None
        parts += (body[copied:start], b'["\\u0000%d"]' % len(arrays))
        arrays.append(array)
        copied = position
    if not arrays:
        return None
    parts.append(body[copied:])
    return _parse_frame(b"".join(parts), arrays)


def write_compactly(array: bytes) -> bytes:
    """Return an array that `cut_arrays` has cut out, without the blanks between its numbers."""
    if b" " in array or b"\n" in array or b"\t" in array or b"\r" in array:
        return array.translate(None, _BLANKS)
    return array


def _parse_frame(frame: bytes, arrays: list[bytes]) -> CutBody | None:
    try:
        value = orjson.loads(frame)
        if frame.count(b"[") + frame.count(b"{") > jsontext.MAX_DEPTH:
            jsontext.check_depth(value)
    except (orjson.JSONDecodeError, RecursionError):
        return None
    return CutBody(value, arrays)


def _is_of_finite_numbers(array: bytes) -> bool:
    """Return whether an array that begins with a digit or a minus is JSON of finite numbers, true, false and null."""
    if any(mark in array for mark in _NOT_NUMBERS):
        return False
    if b"e" in array and _GROWING_EXPONENT.search(array):
        return False
    if _has_many_digits(array):
        return False
    try:
        _json_checker.decode(array)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _has_many_digits(array: bytes) -> bool:
    """Return whether a number has so many digits that it may be beyond what a float can be."""
    samples = array[::_STRIDE].translate(_DIGITS_AS_ZEROS)
    if b"0" * (_DIGITS_OF_INFINITY // _STRIDE) not in samples:
        return False
    return b"0" * _DIGITS_OF_INFINITY in array.translate(_DIGITS_AS_ZEROS)


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
