"""Post-processing: turn a provider's response into tensors, by the action's `post_process_function`.

A built-in function (its name begins with `connector.post_process.`) reads vectors or scores at a JSONPath; any other
text is Painless source, which the store runs first; without a function the response becomes `dataAsMap`. The parameter
`response_filter` is the JSONPath in all three cases; `output_processors` edit a response that no built-in function
reads. A response that a function cannot read, or that has nothing at the filter's path, is the provider's failure
(424), such as an expired key or a deleted model.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson

from opensearch_ml_stream.connectors.decoding.detected_framing import is_stream
from opensearch_ml_stream.connectors.documents import Action
from opensearch_ml_stream.connectors.errors import InvalidRequest, UpstreamError
from opensearch_ml_stream.connectors.predict import tensors
from opensearch_ml_stream.connectors.predict.input_order import check_count, put_in_order
from opensearch_ml_stream.connectors.predict.painless import (
    PainlessCall,
    define_escape,
    fill_parameters,
    parse_result,
)
from opensearch_ml_stream.connectors.predict.tensors import Tensor
from opensearch_ml_stream.connectors.processors.chain import compile_processors
from opensearch_ml_stream.connectors.syntax import jsontext, provider_json
from opensearch_ml_stream.connectors.syntax.jsonpath import MISSING, JSONPath, compile_path
from opensearch_ml_stream.connectors.syntax.work_limit import WorkLimit

RESPONSE_FILTER = "response_filter"
OUTPUT_PROCESSORS = "output_processors"
_PREFIX = "connector.post_process."
_DATA_TYPE = re.compile(r"\.(float(?:16|32|64)|u?int(?:8|16|32|64)|boolean|string|u?binary)(?!\w)", re.IGNORECASE)
_STREAM = (
    "The provider responded with a stream of events where one JSON object was asked for. Let the connector's "
    'request_body ask for none ("stream": false, with most providers), or ask for a stream of the prediction'
)
_SCORES = ("relevance_score", "relevanceScore", "score")

# Reads the value at a path: (value, data type) -> tensors. TypeError or ValueError says why it cannot.
_Reader = Callable[[Any, str], list[Tensor]]


@dataclass(frozen=True, slots=True)
class _BuiltIn:
    """A built-in function: the default JSONPath and the reader of the value there."""

    path: str
    read: _Reader


@dataclass(frozen=True, slots=True)
class EmbeddingPath:
    """Where a built-in function reads embeddings: one of them if `is_one`, else a list of them."""

    path: JSONPath
    is_one: bool
    data_type: str

    def read(self, document: Any) -> Any:
        """Return what is at the path, in the order of the inputs. UpstreamError for rows that are numbered wrongly."""
        return _read_in_order(self.path, document)

    @property
    def has_only_names(self) -> bool:
        """Return whether the path leads through objects alone."""
        return self.path.tokens is not None and all(isinstance(token, str) for token in self.path.tokens)


def check(action: Action, parameters: Mapping[str, str]) -> None:
    """Raise InvalidRequest for functions and parameters that could not work with any response.

    To be called before the provider is called and paid.
    """
    function = (action.post_process_function or "").strip()
    if function.startswith(_PREFIX):
        _find_built_in(function)
    elif parameters.get(OUTPUT_PROCESSORS):
        compile_processors(parameters[OUTPUT_PROCESSORS], OUTPUT_PROCESSORS)
    if parameters.get(RESPONSE_FILTER):
        compile_path(parameters[RESPONSE_FILTER])


def embedding_path(action: Action, parameters: Mapping[str, str]) -> EmbeddingPath | None:
    """Return where the action's function reads embeddings in a response; None if it does something else.

    None also for a path with more than names, indexes and wildcards. `parameters` and errors as for `read_response`.
    """
    function = fill_parameters(action.post_process_function or "", parameters).strip()
    return _embedding_path(function, parameters.get(RESPONSE_FILTER, "").strip()) if function in _BUILT_IN else None


@lru_cache(maxsize=256)  # of the functions there are, with paths that are none longer than MAX_PATH_CHARS
def _embedding_path(function: str, response_filter: str) -> EmbeddingPath | None:
    built_in = _BUILT_IN[function]
    source = response_filter or built_in.path
    if built_in.read not in (_embedding, _embeddings) or (path := compile_path(source)).tokens is None:
        return None
    return EmbeddingPath(path, built_in.read is _embedding, _data_type(source))


def read_response(
    action: Action, parameters: Mapping[str, str], body: bytes, inputs: int | None = None
) -> list[Tensor] | PainlessCall:
    """Return the tensors of a response, or the script to run, whose result is for `read_script_result`.

    `parameters` are the connector's with the request's laid over them. UpstreamError if the response cannot be read, or
    if a built-in function finds another number of embeddings or scores in it than it is to have `inputs`.
    """
    body, value = _read_body(body)
    function = fill_parameters(action.post_process_function or "", parameters).strip()
    if function.startswith(_PREFIX):
        return _built_in(function, parameters.get(RESPONSE_FILTER, ""), value, len(body), inputs)
    if function:
        return PainlessCall(define_escape(function), value if isinstance(value, dict) else {"result": value})
    return _default(parameters, body, value)


def read_script_result(parameters: Mapping[str, str], body: bytes, result: str | None) -> list[Tensor]:
    """Return the tensors of a script's result: JSON in REST form, or any other text. None keeps the response `body`."""
    if result is None:
        return _default(parameters, *_read_body(body))
    if not result.lstrip().startswith(("{", "[")):
        return _default(parameters, result.encode(), result)
    value = parse_result(result, "post_process_function")
    if parameters.get(RESPONSE_FILTER) or parameters.get(OUTPUT_PROCESSORS):
        return _default(parameters, result.encode(), value)
    if isinstance(value, dict):
        return [tensors.of_rest(value)]
    return [tensors.of_rest(item) if isinstance(item, dict) else tensors.of_value(item) for item in value]


def parse_body(body: bytes) -> Any:
    """Return the JSON value of a response. UpstreamError if it is not JSON, or nested too deep."""
    return _read_body(body)[1]


def _read_body(body: bytes) -> tuple[bytes, Any]:
    """Return a response as it is meant, and its value; errors as of `parse_body`."""
    try:
        body, value = provider_json.read(body)
        if body.count(b"[") + body.count(b"{") > jsontext.MAX_DEPTH:
            jsontext.check_depth(value)
    except orjson.JSONDecodeError as error:
        if is_stream(body):
            raise UpstreamError(_STREAM) from None
        raise UpstreamError(f"The provider's response is not JSON: {jsontext.describe(error)}") from None
    except RecursionError:
        raise UpstreamError(f"The provider's response is JSON of more than {jsontext.MAX_DEPTH} levels") from None
    return body, value


def _default(parameters: Mapping[str, str], text: bytes, value: Any) -> list[Tensor]:
    """Return the tensor of `value` after filter and processors; without a filter the processors work on `text`."""
    source = parameters.get(RESPONSE_FILTER)
    if source:
        value = compile_path(source).read(value, _work(source, len(text)))
        if value is MISSING:
            raise UpstreamError(f"The provider's response has nothing at [{source}], the {RESPONSE_FILTER}")
    if parameters.get(OUTPUT_PROCESSORS):
        subject = value if source else text.decode("utf-8", "replace")
        processors = compile_processors(parameters[OUTPUT_PROCESSORS], OUTPUT_PROCESSORS)
        value = processors.run(subject, len(text), UpstreamError)
    if isinstance(value, str) and jsontext.is_container(value):
        value = orjson.loads(value)
    return [tensors.of_value(value)]


def _work(path: str, size: int) -> WorkLimit:
    """Return the limit for reading a response of this many bytes."""
    return WorkLimit(f"The JSONPath [{path}]", size, UpstreamError)


def _read_in_order(path: JSONPath, value: Any, work: WorkLimit | None = None) -> Any:
    if (rows := path.rows(value)) is not None:
        put_in_order(rows, path.source)
    return path.read(value, work)


def _built_in(function: str, response_filter: str, value: Any, size: int, inputs: int | None) -> list[Tensor]:
    built_in = _find_built_in(function)
    path = response_filter.strip() or built_in.path
    read = _read_in_order if built_in.read is _embeddings else JSONPath.read
    selected = read(compile_path(path), value, _work(path, size))
    if selected is MISSING:
        raise UpstreamError(f"The provider's response has nothing at [{path}], where {function} reads it")
    try:
        output = built_in.read(selected, _data_type(path))
    except (TypeError, ValueError) as error:
        raise UpstreamError(f"{function} cannot read what the provider's response has at [{path}]: {error}") from None
    if built_in.read in _OF_EACH_INPUT:
        check_count(len(output), inputs, "score" if built_in.read is _similarities else "embedding", path)
    return output


def _data_type(path: str) -> str:
    """Return the data type that a path names, such as `$.embeddings.int8`."""
    types = _DATA_TYPE.findall(path)
    return types[-1].upper() if types else "FLOAT32"


def _find_built_in(function: str) -> _BuiltIn:
    if function not in _BUILT_IN:
        names = ", ".join(sorted(_BUILT_IN))
        raise InvalidRequest(f"There is no built-in post_process_function [{function}]; there are {names}")
    return _BUILT_IN[function]


def _embeddings(value: Any, data_type: str) -> list[Tensor]:
    if not isinstance(value, list) or not all(_is_vector(vector) for vector in value):
        raise ValueError("The embedding should be a non-empty List containing Float values.")
    return [tensors.embedding(vector, data_type) for vector in value]


def _embedding(value: Any, data_type: str) -> list[Tensor]:
    return _embeddings([value], data_type)


def _is_vector(value: Any) -> bool:
    """Return whether the value is a list that begins with a number. Checking every number would cost too much."""
    return isinstance(value, list) and bool(value) and isinstance(value[0], int | float)


def _similarities(value: Any, data_type: str) -> list[Tensor]:
    """Return one score for each document, in the order of the documents; providers sort by score."""
    if not isinstance(value, list):
        raise ValueError("Post process function input is not a List.")
    scores: dict[int, float] = {}
    for item in value:
        name = next((name for name in _SCORES if isinstance(item, dict) and name in item), None)
        if name is None or type(item.get("index")) is not int:
            raise ValueError("The rerank result should contain index and relevance_score.")
        scores[item["index"]] = item[name]
    if len(scores) < len(value):
        raise ValueError("An index is there more than once.")
    if sorted(scores) != list(range(len(value))):
        raise ValueError("It does not score every document; ask for as many results (top_n) as there are documents")
    return [tensors.similarity(scores[index]) for index in range(len(value))]


def _batch_job(value: Any, data_type: str) -> list[Tensor]:
    """Return a Bedrock batch job, with `processedJobArn`, its ARN as a URL's path holds it, added."""
    if not isinstance(value, dict) or not isinstance(value.get("jobArn"), str):
        raise ValueError("job arn is missing.")
    return [tensors.response({**value, "processedJobArn": value["jobArn"].replace("/", "%2F")})]


def _passthrough(value: Any, data_type: str) -> list[Tensor]:
    """Return the tensors in the response of another ML Commons as they are."""
    results = value.get("inference_results") if isinstance(value, dict) else None
    if not isinstance(results, list):
        return [tensors.of_value(value)]
    outputs = [result.get("output") for result in results if isinstance(result, dict)]
    items = [item for output in outputs if isinstance(output, list) for item in output]
    return [tensors.of_rest(item) for item in items if isinstance(item, dict)]


_OF_EACH_INPUT = (_embeddings, _embedding, _similarities)
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
        "bedrock.batch_job_arn": _BuiltIn("$", _batch_job),
        "cohere.rerank": _BuiltIn("$.results", _similarities),
        "bedrock.rerank": _BuiltIn("$.results", _similarities),
        "default.rerank": _BuiltIn("$[*]", _similarities),
        "mlcommons.passthrough": _BuiltIn("$", _passthrough),
    }.items()
}
