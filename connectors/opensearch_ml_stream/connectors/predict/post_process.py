"""`post_process_function`: a provider's answer becomes the tensors of one call.

Three ways: a built-in function (its name begins with `connector.post_process.`) reads vectors or scores at a
JSONPath; Painless source is run by the store first; without a function the answer becomes `dataAsMap`. The parameter
`response_filter` is the JSONPath in all of them, `output_processors` work on an answer that no built-in function
reads. An answer that a function cannot read is the provider's fault (424): a key that expired, a model that is gone.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from opensearch_ml_stream.connectors.documents import Action
from opensearch_ml_stream.connectors.errors import InvalidRequest, UpstreamError
from opensearch_ml_stream.connectors.predict import tensors
from opensearch_ml_stream.connectors.predict.painless import (
    PainlessCall,
    fill_parameters,
    loads_result,
    with_escape,
)
from opensearch_ml_stream.connectors.predict.tensors import Tensor
from opensearch_ml_stream.connectors.processors.chain import compile_processors, process
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.connectors.syntax.jsonpath import MISSING, compile_path

RESPONSE_FILTER = "response_filter"
OUTPUT_PROCESSORS = "output_processors"
_PREFIX = "connector.post_process."
_DATA_TYPE = re.compile(r"\.(float(?:16|32|64)|u?int(?:8|16|32|64)|boolean|string|u?binary)(?!\w)", re.IGNORECASE)
_SCORES = ("relevance_score", "relevanceScore", "score")

# What reads the value at a path: (value, data type) -> tensors; TypeError or ValueError says why it cannot.
_Reader = Callable[[Any, str], list[Tensor]]


@dataclass(frozen=True, slots=True)
class _BuiltIn:
    path: str
    read: _Reader


def check(action: Action, parameters: Mapping[str, str]) -> None:
    """InvalidRequest for what could not work with any answer. To be asked before the provider is called and paid."""
    function = (action.post_process_function or "").strip()
    if function.startswith(_PREFIX):
        _find_built_in(function)
    elif parameters.get(OUTPUT_PROCESSORS):
        compile_processors(parameters[OUTPUT_PROCESSORS], OUTPUT_PROCESSORS)
    if parameters.get(RESPONSE_FILTER):
        compile_path(parameters[RESPONSE_FILTER])


def output(action: Action, parameters: Mapping[str, str], body: bytes) -> list[Tensor] | PainlessCall:
    """The tensors of an answer, or the script to run before `after_script` gives them.

    `parameters` are the connector's with the request's over them. UpstreamError if the answer cannot be read.
    """
    value = _loads(body)
    function = fill_parameters(action.post_process_function or "", parameters).strip()
    if function.startswith(_PREFIX):
        return _built_in(function, parameters.get(RESPONSE_FILTER, ""), value)
    if function:
        return PainlessCall(with_escape(function), value if isinstance(value, dict) else {"result": value})
    return _default(parameters, body, value)


def after_script(parameters: Mapping[str, str], body: bytes, result: str | None) -> list[Tensor]:
    """The tensors of a script's result: JSON in REST shape, or other text; None leaves the answer as it is."""
    if result is None:
        return _default(parameters, body, _loads(body))
    if not result.lstrip().startswith(("{", "[")):
        return _default(parameters, result.encode(), result)
    value = loads_result(result, "post_process_function")
    if parameters.get(RESPONSE_FILTER) or parameters.get(OUTPUT_PROCESSORS):
        return _default(parameters, result.encode(), value)
    if isinstance(value, dict):
        return [tensors.of_rest(value)]
    return [tensors.of_rest(item) if isinstance(item, dict) else tensors.of_value(item) for item in value]


def _loads(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise UpstreamError(
            f"The provider's answer is not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        ) from None


def _default(parameters: Mapping[str, str], text: bytes, value: Any) -> list[Tensor]:
    """Filter, then processors, then the default mapping. What is not filtered reaches the processors as `text`."""
    source = parameters.get(RESPONSE_FILTER)
    found = compile_path(source).read(value) if source else MISSING
    if parameters.get(OUTPUT_PROCESSORS):
        subject = text.decode("utf-8", "replace") if found is MISSING else found
        value = process(compile_processors(parameters[OUTPUT_PROCESSORS], OUTPUT_PROCESSORS), subject)
    elif found is not MISSING:
        value = found
    return [tensors.of_value(_parsed(value))]


def _parsed(value: Any) -> Any:
    """A string that is the text of a JSON object or array is that."""
    if isinstance(value, str) and value.lstrip().startswith(("{", "[")) and jsontext.is_json(value):
        return orjson.loads(value)
    return value


def _built_in(function: str, response_filter: str, value: Any) -> list[Tensor]:
    built_in = _find_built_in(function)
    path = response_filter.strip() or built_in.path
    found = compile_path(path).read(value)
    if found is MISSING:
        raise UpstreamError(f"The provider's answer has nothing at [{path}], where {function} reads it")
    types = _DATA_TYPE.findall(path)
    try:
        return built_in.read(found, types[-1].upper() if types else "FLOAT32")
    except (TypeError, ValueError) as error:
        raise UpstreamError(f"{function} cannot read what the provider's answer has at [{path}]: {error}") from None


def _find_built_in(function: str) -> _BuiltIn:
    if function not in _BUILT_IN:
        known = ", ".join(sorted(_BUILT_IN))
        raise InvalidRequest(f"There is no built-in post_process_function [{function}]; there are {known}")
    return _BUILT_IN[function]


def _embeddings(value: Any, data_type: str) -> list[Tensor]:
    if not isinstance(value, list) or not all(_is_vector(vector) for vector in value):
        raise ValueError("The embedding should be a non-empty List containing Float values.")
    return [tensors.embedding(vector, data_type) for vector in value]


def _embedding(value: Any, data_type: str) -> list[Tensor]:
    return _embeddings([value], data_type)


def _is_vector(value: Any) -> bool:
    """Whether it is a list that begins with a number; looking at every number of every vector would cost too much."""
    return isinstance(value, list) and bool(value) and isinstance(value[0], int | float)


def _similarities(value: Any, data_type: str) -> list[Tensor]:
    """One score for each document, in the order of the documents (providers answer in the order of the scores)."""
    if not isinstance(value, list):
        raise ValueError("Post process function input is not a List.")
    scores: dict[int, float] = {}
    for item in value:
        name = next((name for name in _SCORES if isinstance(item, dict) and name in item), None)
        if name is None or not isinstance(item.get("index"), int):
            raise ValueError("The rerank result should contain index and relevance_score.")
        scores[item["index"]] = item[name]
    if sorted(scores) != list(range(len(value))):
        raise ValueError("It does not score every document; ask for as many results (top_n) as there are documents")
    return [tensors.similarity(scores[index]) for index in range(len(value))]


def _job(value: Any, data_type: str) -> list[Tensor]:
    """A Bedrock batch job; `processedJobArn` is the ARN as it stands in a URL's path."""
    if not isinstance(value, dict) or not isinstance(value.get("jobArn"), str):
        raise ValueError("job arn is missing.")
    return [tensors.response({**value, "processedJobArn": value["jobArn"].replace("/", "%2F")})]


def _passthrough(value: Any, data_type: str) -> list[Tensor]:
    """The answer of another ML Commons: its tensors are ours."""
    results = value.get("inference_results") if isinstance(value, dict) else None
    if not isinstance(results, list):
        return [tensors.of_value(value)]
    outputs = [result.get("output") for result in results if isinstance(result, dict)]
    inner = [tensor for given in outputs if isinstance(given, list) for tensor in given]
    return [tensors.of_rest(tensor) for tensor in inner if isinstance(tensor, dict)]


_BUILT_IN: Mapping[str, _BuiltIn] = {
    f"{_PREFIX}{name}": built_in
    for name, built_in in {
        "openai.embedding": _BuiltIn("$.data[*].embedding", _embeddings),
        "cohere.embedding": _BuiltIn("$.embeddings", _embeddings),
        "cohere_v2.embedding.float": _BuiltIn("$.embeddings.float", _embeddings),
        "cohere_v2.embedding.int8": _BuiltIn("$.embeddings.int8", _embeddings),
        "cohere_v2.embedding.uint8": _BuiltIn("$.embeddings.uint8", _embeddings),
        "cohere_v2.embedding.binary": _BuiltIn("$.embeddings.binary", _embeddings),
        "cohere_v2.embedding.ubinary": _BuiltIn("$.embeddings.ubinary", _embeddings),
        "default.embedding": _BuiltIn("$[*]", _embeddings),
        "bedrock.embedding": _BuiltIn("$.embedding", _embedding),
        "bedrock_v2.embedding.float": _BuiltIn("$.embeddingsByType.float", _embedding),
        "bedrock_v2.embedding.binary": _BuiltIn("$.embeddingsByType.binary", _embedding),
        "bedrock.nova.embedding": _BuiltIn("$.embeddings[*].embedding", _embeddings),
        "bedrock.batch_job_arn": _BuiltIn("$", _job),
        "cohere.rerank": _BuiltIn("$.results", _similarities),
        "bedrock.rerank": _BuiltIn("$.results", _similarities),
        "default.rerank": _BuiltIn("$[*]", _similarities),
        "mlcommons.passthrough": _BuiltIn("$", _passthrough),
    }.items()
}
