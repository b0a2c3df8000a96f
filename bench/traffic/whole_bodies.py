"""What whole requests ask, what the provider responds, and whether a relay's response holds it.

A chat completion of about 400 bytes, and embeddings of 1,536 floats, 16 kB each, of one or more documents.
"""

import json
import random
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import orjson

CHAT, EMBEDDING, EMBEDDING_8 = "chat", "embedding", "embedding of 8"
DOCUMENTS = {EMBEDDING: 1, EMBEDDING_8: 8}

QUESTION = "What is OpenSearch? Answer in a sentence."
TEXT = (
    "OpenSearch is a search and analytics engine that is open source, and it scales: documents go in, and what they "
    "say, count and mean is found again."
)
_DIMENSIONS = 1536
_ROW = b'{"object":"embedding","index":%d,"embedding":%b}'
_EMBEDDINGS = b'{"object":"list","data":[%b],"model":"bench","usage":{"prompt_tokens":%d,"total_tokens":%d}}'
_SHORTEST_VECTOR = 100  # shorter lists of numbers, such as a tensor's shape, are none


def documents(what: str) -> list[str]:
    """The texts that a request for embeddings holds."""
    return [f"A document to be found again: what a search engine is, part {n}." for n in range(DOCUMENTS[what])]


@cache
def vector(number: int) -> list[float]:
    """The embedding of the document of that number: the same in every process."""
    numbers = random.Random(number)
    return [round(numbers.uniform(-0.1, 0.1), 7) for _ in range(_DIMENSIONS)]


def chat_response() -> bytes:
    message = {"role": "assistant", "content": TEXT, "refusal": None}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    usage = {"prompt_tokens": 17, "completion_tokens": 33, "total_tokens": 50}
    head = {"id": "chatcmpl-bench", "object": "chat.completion", "created": 1700000000, "model": "bench"}
    return _compact({**head, "choices": [choice], "usage": usage})


def embeddings_response(texts: Sequence[str]) -> bytes:
    """Each document's own embedding, so that one that another caller gets is wrong."""
    rows = b",".join(_ROW % (index, _embedding(number_in(text))) for index, text in enumerate(texts))
    return _EMBEDDINGS % (rows, 13 * len(texts), 13 * len(texts))


def number_in(text: str) -> int:
    """The number of a document, 0 for a text without one."""
    match = re.search(r"\d+", text)
    return int(match[0]) if match else 0


@cache
def _embedding(number: int) -> bytes:
    return _compact(vector(number))


def holds(what: str, body: bytes) -> bool:
    """Whether the JSON of any system has the provider's text, or the floats of all embeddings in their order.

    Vectors may stand apart or as one list, so that the check is the same for every system.
    """
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError:
        return False
    if what == CHAT:
        return TEXT in _strings(parsed)
    wanted = [value for number in range(DOCUMENTS[what]) for value in vector(number)]
    return [value for found in _vectors(parsed) for value in found] == wanted


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for member in _members(value):
        yield from _strings(member)


def _vectors(value: Any) -> Iterator[list[float]]:
    if isinstance(value, list) and len(value) > _SHORTEST_VECTOR and isinstance(value[0], float):
        yield value
        return
    for member in _members(value):
        yield from _vectors(member)


def _members(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _compact(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
