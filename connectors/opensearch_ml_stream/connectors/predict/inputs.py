"""Read the body of a predict request as one of four inputs.

    {"parameters": {...}, "action_type"?, "dlq"?}         RemoteInput
    {"text_docs": [...], "parameters"?}                   TextDocsInput
    {"query_text": "...", "text_docs": [...], ...}        TextSimilarityInput
    {"question": "...", "context": "...", ...}            QuestionAnsweringInput

On `/_predict/{algorithm}/{id}` the algorithm decides which; on `/models/{id}/_predict`, where ML Commons takes only
`parameters`, the fields that the body has do. Parameter values keep the caller's text: a string is a `str`, any other
value a `JsonText`. Unknown fields are ignored.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from opensearch_ml_stream.connectors.documents import ACTION_TYPES, JOB_ACTION_TYPES
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.syntax import json_members, jsontext

# The `algorithm` of the path in lower case -> the field that its input must have.
_ALGORITHMS = {
    "remote": None,
    "text_embedding": "text_docs",
    "sparse_encoding": "text_docs",
    "sparse_tokenize": "text_docs",
    "text_similarity": "query_text",
    "question_answering": "question",
}

_MAX_COLONS = 10_000  # and so members of a body that the parser reads alone
_PAIRS_DECODER = json.JSONDecoder(object_pairs_hook=tuple)  # an object becomes a tuple of pairs
_TEXTS_DECODER = json.JSONDecoder(parse_int=str, parse_float=str)
_SURROGATE_PAIR = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")  # how clients whose JSON is ASCII write half an emoji


@dataclass(frozen=True, slots=True)
class RemoteInput:
    """Parameters for the connector's template.

    `action_type` says which of the connector's actions to take, in upper case; None is the route's own. `dlq` is the
    dead-letter bucket of a batch job.
    """

    parameters: Mapping[str, str] = field(default_factory=dict)
    action_type: str | None = None
    dlq: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class TextDocsInput:
    """Texts (or base64 images, for a multimodal model) to make embeddings of."""

    text_docs: tuple[str, ...]
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TextSimilarityInput:
    """Texts to rank by their similarity to `query_text`."""

    query_text: str
    text_docs: tuple[str, ...]
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class QuestionAnsweringInput:
    """A question to answer from a context."""

    question: str
    context: str
    parameters: Mapping[str, str] = field(default_factory=dict)


PredictInput = RemoteInput | TextDocsInput | TextSimilarityInput | QuestionAnsweringInput


def read_predict_input(body: bytes, algorithm: str | None = None) -> PredictInput:
    """Return the input of a request body. InvalidRequest names the field that is wrong, never its value."""
    if algorithm is None and (strings := _parameters_of_strings(body)) is not None:
        return RemoteInput(strings)
    fields, parameters = _fields(body)
    kind = _kind(fields, algorithm)
    if kind == "text_docs":
        return TextDocsInput(_text_docs(fields), parameters)
    if kind == "query_text":
        return TextSimilarityInput(_string(fields, "query_text"), _text_docs(fields), parameters)
    if kind == "question":
        return QuestionAnsweringInput(_string(fields, "question"), _string(fields, "context"), parameters)
    return RemoteInput(parameters, _action_type(fields), _dlq(fields))


def _parameters_of_strings(body: bytes) -> dict[str, str] | None:
    """Return the parameters of a body that holds nothing else, all of them strings, as most bodies of streams are.

    The parser alone, in C, reads such a body. None for any other, and for one in which something may be wrong.
    """
    if body.count(b"{") != 2 or body.count(b":") > _MAX_COLONS or (b"/" in body and (b"//" in body or b"/*" in body)):
        return None
    try:
        text = body.decode().strip()
        value, end = _PAIRS_DECODER.raw_decode(text)
        [(name, pairs)] = value
        parameters: dict[str, str] = dict(pairs)
    except (ValueError, TypeError, RecursionError):
        return None
    is_alone = text.startswith("{") and end == len(text) and name == "parameters" and isinstance(pairs, tuple)
    is_plain = len(parameters) == len(pairs) and set(map(type, parameters.values())) <= {str}
    return parameters if is_alone and is_plain and not _SURROGATE.search(text) else None


def _fields(body: bytes) -> tuple[dict[str, str], dict[str, str]]:
    """Return the body's fields with the JSON text of their values, without `parameters`, and the parameters.

    InvalidRequest if the body, or `parameters`, is not a JSON object.
    """
    text = jsontext.decode(body).strip()
    if not text:
        raise InvalidRequest("request body is required", type="parse_exception")
    if not text.startswith("{"):
        raise InvalidRequest("The request body must be a JSON object", type="parse_exception")
    try:
        fields, parameters = json_members.split_body(text, "parameters")
    except json.JSONDecodeError as error:
        raise jsontext.not_json(error) from None
    except RecursionError:
        raise jsontext.too_deep() from None
    if parameters is None and fields.pop("parameters", "null") != "null":
        raise InvalidRequest("parameters must be a JSON object")
    if _SURROGATE.search(text):
        _check_surrogates(fields)
        _check_surrogates({"parameters": json_members.join_members(parameters or {})})
    return fields, {name: jsontext.parse_parameter(value) for name, value in (parameters or {}).items()}


def _check_surrogates(values: Mapping[str, str]) -> None:
    """Raise InvalidRequest for half of a surrogate pair, which is no character and cannot be encoded for a provider."""
    for name, value in values.items():
        # An escaped backslash is none that a surrogate's escape could begin with.
        if _SURROGATE.search(_SURROGATE_PAIR.sub("", value.replace("\\\\", "--"))):
            raise InvalidRequest(
                f"{name} holds half of a surrogate pair (\\ud800 to \\udfff); was a string cut inside a character?"
            )


def _kind(fields: Mapping[str, str], algorithm: str | None) -> str | None:
    """Return the field that decides which input it is, None for RemoteInput."""
    kind = None
    if algorithm is not None:
        name = algorithm.lower()
        if name not in _ALGORITHMS:
            raise InvalidRequest(f"Algorithm [{algorithm}] is not one of {', '.join(_ALGORITHMS)}")
        kind = _ALGORITHMS[name]
    if kind is None:
        kind = next((name for name in ("query_text", "text_docs", "question") if name in fields), None)
        if kind == "question" and "context" not in fields:
            return None
    return kind


def _text_docs(fields: Mapping[str, str]) -> tuple[str, ...]:
    """Return the texts; a number or a boolean among them counts as its text, as in ML Commons."""
    docs = _TEXTS_DECODER.decode(fields.get("text_docs", "[]"))
    if docs == []:
        raise InvalidRequest("Empty text docs")
    if not isinstance(docs, list):
        raise InvalidRequest("text_docs must be an array of strings")
    for index, doc in enumerate(docs):
        if isinstance(doc, bool):
            docs[index] = "true" if doc else "false"
        elif not isinstance(doc, str):
            raise InvalidRequest(f"text_docs[{index}] must be a string")
    return tuple(docs)


def _string(fields: Mapping[str, str], name: str) -> str:
    value = json.loads(fields.get(name, "null"))
    if not isinstance(value, str):
        raise InvalidRequest(f"{name} must be a string")
    return value


def _action_type(fields: Mapping[str, str]) -> str | None:
    if fields.get("action_type", "null") == "null":
        return None
    action_type = _string(fields, "action_type")
    if action_type.upper() not in ACTION_TYPES:
        raise InvalidRequest(f"Wrong Action Type of {action_type}")
    if action_type.upper() in JOB_ACTION_TYPES:
        raise InvalidRequest(
            f"{action_type} is about a batch job and makes no prediction. A job's task is read by GET "
            "/_plugins/_ml/tasks/{task_id} and cancelled by POST /_plugins/_ml/tasks/{task_id}/_cancel"
        )
    return action_type.upper()


def _dlq(fields: Mapping[str, str]) -> Mapping[str, Any] | None:
    if "dlq" not in fields:
        return None
    dlq = json.loads(fields["dlq"])
    if dlq is not None and not isinstance(dlq, dict):
        raise InvalidRequest("dlq must be an object with bucket and region")
    return dlq
