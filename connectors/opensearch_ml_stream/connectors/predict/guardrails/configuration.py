"""Configuration of a model's guardrails, which check text that goes to a provider or comes from it.

    {"type": "local_regex", "input_guardrail":  {"regex": [...], "stop_words": [{"index_name", "source_fields"}]},
                            "output_guardrail": {...}}
    {"type": "model",       "input_guardrail":  {"model_id", "response_filter", "response_validation_regex"}, ...}

Stop words need a query and a guard model a prediction, which the caller makes.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.predict.guardrails.patterns import GuardPattern
from opensearch_ml_stream.connectors.syntax.jsonpath import MISSING, compile_path
from opensearch_ml_stream.connectors.syntax.regex import PatternLimit, compile_regex

INPUT_TRIGGERED = "guardrails triggered for user input"
OUTPUT_TRIGGERED = "guardrails triggered for LLM output"

MAX_INSTRUCTIONS = 1_000_000  # of all patterns of a guard: half a second to compile, which a thread does


@dataclass(frozen=True, slots=True)
class StopWords:
    """An index of percolate queries. Text that one of them matches is refused."""

    index_name: str
    source_fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LocalGuard:
    """A guard of regular expressions, which refuse the text that they match as a whole, and stop words."""

    regex: tuple[GuardPattern, ...] = ()
    stop_words: tuple[StopWords, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelGuard:
    """A guard model. It is given the text as parameter `question`; its response must match the regular expression.

    `response_filter` is the JSONPath of the value to match, None for the whole response.
    """

    model_id: str
    response_filter: str | None
    response_validation_regex: str


Guard = LocalGuard | ModelGuard


@dataclass(frozen=True, slots=True)
class Guardrails:
    """The guards of a model's input and output, None where there is no guard."""

    input: Guard | None = None
    output: Guard | None = None


def read_guardrails(document: Mapping[str, Any] | None) -> Guardrails:
    """Return the guardrails of a model document, for which a thread is right: thousands of patterns take a second.

    InvalidRequest names the field that is wrong.
    """
    if not document:
        return Guardrails()
    kind = document.get("type", "local_regex")
    if kind not in ("local_regex", "model"):
        raise InvalidRequest("guardrails.type must be local_regex or model")
    read = _read_local if kind == "local_regex" else _read_model
    sides = {side: document.get(f"{side}_guardrail") for side in ("input", "output")}
    for side, guard in sides.items():
        if guard is not None and not isinstance(guard, Mapping):
            raise InvalidRequest(f"guardrails.{side}_guardrail must be an object")
    return Guardrails(**{side: read(guard, f"guardrails.{side}_guardrail") for side, guard in sides.items() if guard})


def is_accepted(guard: ModelGuard, response: Any) -> bool:
    """Return whether a guard model's response (its dataAsMap) accepts the text; one without the value does not."""
    value = response
    if guard.response_filter:
        value = compile_path(guard.response_filter).read(response)
        if value is MISSING:
            return False
    regex = compile_regex(guard.response_validation_regex)
    texts = [orjson.dumps(value).decode()]  # ML Commons matches the JSON text, which for a string has quotes
    if isinstance(value, str):
        texts.append(value)
    return any(regex.fullmatch(text) is not None for text in texts)


def _read_local(guard: Mapping[str, Any], path: str) -> LocalGuard:
    sources = _strings(guard.get("regex"), f"{path}.regex")
    patterns = tuple(_compiled(sources, f"{path}.regex", PatternLimit(path, MAX_INSTRUCTIONS)))
    stop_words = guard.get("stop_words") or []
    if not isinstance(stop_words, list) or not all(isinstance(words, Mapping) for words in stop_words):
        raise InvalidRequest(f"{path}.stop_words must be an array of objects with index_name and source_fields")
    return LocalGuard(patterns, tuple(_read_stop_words(words, f"{path}.stop_words") for words in stop_words))


def _compiled(sources: Iterable[str], path: str, limit: PatternLimit) -> Iterator[GuardPattern]:
    for source in sources:
        try:
            pattern = GuardPattern.compile(source)
        except InvalidRequest as error:
            raise InvalidRequest(f"{path}: {error.reason}") from None
        limit.spend(pattern.regex)
        yield pattern


def _read_stop_words(words: Mapping[str, Any], path: str) -> StopWords:
    index_name = words.get("index_name")
    if not isinstance(index_name, str) or not index_name:
        raise InvalidRequest(f"{path} needs an index_name")
    return StopWords(index_name, _strings(words.get("source_fields"), f"{path}.source_fields"))


def _read_model(guard: Mapping[str, Any], path: str) -> ModelGuard:
    for name in ("model_id", "response_validation_regex"):
        if not isinstance(guard.get(name), str) or not guard[name]:
            raise InvalidRequest(f"{path}.{name} must be a string that is not empty")
    response_filter = guard.get("response_filter")
    if response_filter is not None:
        compile_path(str(response_filter))
    compile_regex(guard["response_validation_regex"])
    return ModelGuard(guard["model_id"], response_filter and str(response_filter), guard["response_validation_regex"])


def _strings(value: Any, path: str) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise InvalidRequest(f"{path} must be an array of strings")
    return tuple(value)
