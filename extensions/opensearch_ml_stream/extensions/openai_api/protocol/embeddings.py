"""Requests and responses of `/v1/embeddings`.

https://platform.openai.com/docs/api-reference/embeddings/create
"""

import struct
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest, UpstreamError
from opensearch_ml_stream.connectors.predict.input_order import put_in_order
from opensearch_ml_stream.connectors.response_usage import read_usage
from opensearch_ml_stream.connectors.syntax.jsontext import to_json
from opensearch_ml_stream.connectors.token_spending import estimate_text_tokens
from opensearch_ml_stream.extensions.openai_api.protocol.envelope import OWN_MEMBER
from opensearch_ml_stream.extensions.openai_api.protocol.request_members import Members, is_unicode

MAX_TEXTS = 2048  # of a request, as OpenAI takes

_FORMATS = ("float", "base64")
_AT = ("embeddings", "embedding", "response")  # where responses have vectors that no post-process function has read
_OF_PREDICTION = ("model_id", "warnings")  # members of a prediction beside its results

Vector = Sequence[float]


@dataclass(frozen=True, slots=True)
class EmbeddingsRequest:
    """A request; `further` are members that the model's template may have a parameter for."""

    model: str
    texts: tuple[str, ...]
    is_base64: bool
    further: Mapping[str, Any]


def read_embeddings_request(body: Mapping[str, Any]) -> EmbeddingsRequest:
    """Return the request of a body; InvalidRequest names the member that is wrong."""
    members = Members(body)
    model, texts = members.need_name("model"), _read_texts(members.take_any("input"))
    encoding = members.take("encoding_format", str) or "float"
    if encoding not in _FORMATS:
        raise InvalidRequest("encoding_format must be float or base64")
    dimensions = members.take("dimensions", int)
    further = members.unread() if dimensions is None else {"dimensions": dimensions, **members.unread()}
    return EmbeddingsRequest(model, texts, encoding == "base64", further)


def embeddings_response(request: EmbeddingsRequest, prediction: Mapping[str, Any]) -> bytes:
    """Encode the response of a whole prediction. UpstreamError if it has no embedding for each text."""
    outputs = [output for result in prediction["inference_results"] for output in result["output"]]
    vectors = _vectors(outputs)
    if len(vectors) != len(request.texts):
        raise UpstreamError(f"The model's response holds {len(vectors)} embeddings for {len(request.texts)} texts")
    encode = _base64 if request.is_base64 else list
    data = [
        {"object": "embedding", "index": index, "embedding": encode(vector)} for index, vector in enumerate(vectors)
    ]
    tokens = _tokens(request, outputs)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    own = {name: prediction[name] for name in _OF_PREDICTION if name in prediction}
    response = {"object": "list", "data": data, "model": request.model, "usage": usage}
    return to_json({**response, OWN_MEMBER: own} if own else response)


def _read_texts(value: Any) -> tuple[str, ...]:
    given = [value] if isinstance(value, str) else value
    if not isinstance(given, list) or not given:
        raise InvalidRequest("input must be a string, or an array of strings that is not empty")
    texts: list[Any] = given
    if len(texts) > MAX_TEXTS:
        raise InvalidRequest(f"input must be no more than {MAX_TEXTS} texts; the request has {len(texts)}")
    for place, text in enumerate(texts):
        if isinstance(text, int | list):
            raise InvalidRequest("input must be texts: tokens are specific to the model that they were made for")
        if not isinstance(text, str) or not is_unicode(text):
            raise InvalidRequest(f"input[{place}] must be a string without halves of surrogate pairs")
    return tuple(texts)


def _vectors(outputs: Sequence[Mapping[str, Any]]) -> list[Vector]:
    """Return the vectors in the outputs of a prediction: of tensors, or of the provider's response."""
    vectors: list[Vector] = []
    for output in outputs:
        body = output.get("dataAsMap")
        found: list[Any] = [output.get("data")] if body is None else _of_response(body)
        if not all(isinstance(vector, list) and vector and isinstance(vector[0], int | float) for vector in found):
            raise UpstreamError("The model's response holds no embeddings; is it a model of another kind?")
        vectors += found
    return vectors


def _of_response(body: Any) -> list[Any]:
    """Return what may be the vectors of a provider's response: in OpenAI's form, or under a plain name."""
    if not isinstance(body, dict):
        return [None]
    if isinstance(body.get("data"), list):
        data = list(body["data"])
        put_in_order(data, "$.data")
        return [item.get("embedding") if isinstance(item, dict) else item for item in data]
    found = next((body[name] for name in _AT if name in body), None)
    if isinstance(found, dict):  # by their data types
        found = found.get("float")
    if not isinstance(found, list):
        return [None]
    return found if found and isinstance(found[0], list) else [found]


def _base64(vector: Vector) -> str:
    try:
        return b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
    except (struct.error, OverflowError):
        raise UpstreamError("An embedding in the model's response has a value that is not a 32-bit number") from None


def _tokens(request: EmbeddingsRequest, outputs: Sequence[Mapping[str, Any]]) -> int:
    """Return the provider's count of tokens, or an estimate if its response does not have one."""
    counted = 0
    for output in outputs:
        body = output.get("dataAsMap")
        usage = read_usage(body) if isinstance(body, dict) else None
        count = None if usage is None else (usage.input_tokens or usage.total_tokens)
        if count is None:
            return estimate_text_tokens(sum(len(text.encode()) for text in request.texts))
        counted += count
    return counted
