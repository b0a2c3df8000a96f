"""`pre_process_function`: an input that is not `parameters` becomes the parameters of one or more provider calls.

Built-in functions carry names that begin with `connector.pre_process.`; any other text is Painless source. A
`text_docs` input is split into calls by the connector's `input_docs_processed_step_size`. Without it, a function
that can send only so many texts (`_Embedding.takes`) gets that many, Painless gets one, all others get every text.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opensearch_ml_stream.connectors.documents import Action
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.predict.inputs import (
    PredictInput,
    QuestionAnsweringInput,
    RemoteInput,
    TextDocsInput,
    TextSimilarityInput,
)
from opensearch_ml_stream.connectors.predict.painless import (
    PainlessCall,
    fill_parameters,
    loads_result,
    with_escape,
)
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.connectors.syntax.jsontext import JsonText

STEP_SIZE = "input_docs_processed_step_size"
_PREFIX = "connector.pre_process."
_PROCESS_REMOTE = "pre_process_function.process_remote_inference_input"
_TO_OBJECT = "pre_process_function.convert_remote_inference_param_to_object"
_TO_STRING = "pre_process_function.convert_input_to_json_string"


@dataclass(frozen=True, slots=True)
class Step:
    """One provider call: parameters to lay over the connector's."""

    parameters: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ScriptStep:
    """One provider call whose parameters a script makes first; `after_script` makes it a Step."""

    call: PainlessCall
    parameters: Mapping[str, str]  # the request's own, which win over the script's


@dataclass(frozen=True, slots=True)
class _Embedding:
    """A built-in function for texts. `takes` is how many of them one call can send, None for any number."""

    parameters: Callable[[Sequence[str]], dict[str, str]]
    takes: int | None = None


def steps(action: Action, connector_parameters: Mapping[str, str], given: PredictInput) -> list[Step | ScriptStep]:
    """The provider calls of a predict, in the order of their results; InvalidRequest if the function cannot do it."""
    everything = {**connector_parameters, **given.parameters}
    function = action.pre_process_function
    if function is not None:
        function = fill_parameters(function, everything).strip()
    if function and not function.startswith(_PREFIX):
        return _scripted(function, connector_parameters, given, everything)
    if isinstance(given, RemoteInput):
        return [Step(given.parameters)]
    if isinstance(given, TextDocsInput):
        embedding = _embedding(function)
        return [
            Step({**embedding.parameters(texts), **given.parameters})
            for texts in split(given.text_docs, step_size(connector_parameters), embedding.takes)
        ]
    if not function:
        raise InvalidRequest("pre_process_function not defined in connector")
    if isinstance(given, TextSimilarityInput) and function in _RERANK:
        return [Step({**_RERANK[function](given.query_text, given.text_docs), **given.parameters})]
    raise _wrong_input(function)


def after_script(step: ScriptStep, result: str | None) -> Step:
    """The call that a script's result asks for: a JSON object with an object `parameters`."""
    if result is None:
        raise InvalidRequest("Preprocess function output is null")
    value = loads_result(result, "pre_process_function")
    parameters = value.get("parameters", {}) if isinstance(value, dict) else None
    if not isinstance(parameters, dict):
        raise InvalidRequest("The connector's pre_process_function must return a JSON object with an object parameters")
    return Step({**{name: jsontext.parameter_of(made) for name, made in parameters.items()}, **step.parameters})


def step_size(connector_parameters: Mapping[str, str]) -> int | None:
    """How many texts the connector sends in one call, None if it does not say."""
    given = connector_parameters.get(STEP_SIZE)
    if given is None:
        return None
    if not given.strip().isdecimal() or int(given) == 0:
        raise InvalidRequest(f"Invalid parameter: {STEP_SIZE}. It must be positive integer.")
    return int(given)


def split(texts: Sequence[str], size: int | None, takes: int | None = None) -> list[Sequence[str]]:
    """The texts in runs of `size`, but never more than one call `takes`, so that none is lost."""
    run = min(size or len(texts), takes or len(texts))
    return [texts[start : start + run] for start in range(0, len(texts), run)]


def _scripted(
    function: str, connector_parameters: Mapping[str, str], given: PredictInput, everything: Mapping[str, str]
) -> list[Step | ScriptStep]:
    source = with_escape(function)
    if isinstance(given, RemoteInput):
        if not _is_true(everything, _PROCESS_REMOTE):
            return [Step(given.parameters)]
        params = {"parameters": _objects(given.parameters) if _is_true(everything, _TO_OBJECT) else given.parameters}
        # A script of ML Commons reads the parameters from `params` itself; one for this place from params.parameters.
        return [ScriptStep(PainlessCall(source, {**params["parameters"], **params}), given.parameters)]
    as_text = _is_true(everything, _TO_STRING)
    return [
        ScriptStep(PainlessCall(source, _as_strings(params) if as_text else params), given.parameters)
        for params in _script_inputs(given, connector_parameters)
    ]


def _script_inputs(given: PredictInput, connector_parameters: Mapping[str, str]) -> list[dict[str, Any]]:
    """The input as a script sees it, once for each call. Texts are escaped: scripts put quotes around them."""
    beside = {"parameters": dict(given.parameters)} if given.parameters else {}
    if isinstance(given, TextDocsInput):
        return [
            {"algorithm": "TEXT_EMBEDDING", "text_docs": [jsontext.escape(text) for text in texts], **beside}
            for texts in split(given.text_docs, step_size(connector_parameters) or 1)
        ]
    if isinstance(given, TextSimilarityInput):
        texts = [jsontext.escape(text) for text in given.text_docs]
        query = jsontext.escape(given.query_text)
        return [{"algorithm": "TEXT_SIMILARITY", "query_text": query, "text_docs": texts, **beside}]
    if isinstance(given, QuestionAnsweringInput):
        return [{"algorithm": "QUESTION_ANSWERING", "question": given.question, "context": given.context, **beside}]
    return [{"algorithm": "REMOTE", **beside}]


def _objects(parameters: Mapping[str, str]) -> dict[str, Any]:
    return {
        name: json.loads(text) if isinstance(text, JsonText) or _is_container(text) else text
        for name, text in parameters.items()
    }


def _is_container(text: str) -> bool:
    return text.lstrip().startswith(("{", "[")) and jsontext.is_json(text)


def _as_strings(params: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(jsontext.parameter_of(value)) for name, value in params.items()}


def _is_true(parameters: Mapping[str, str], name: str) -> bool:
    return parameters.get(name, "").lower() == "true"


def _embedding(function: str | None) -> _Embedding:
    name = function or f"{_PREFIX}default.embedding"
    if name not in _EMBEDDINGS:
        raise _wrong_input(name)
    return _EMBEDDINGS[name]


def _wrong_input(function: str) -> InvalidRequest:
    if function in _RERANK:
        return InvalidRequest("This pre_process_function can only support TextSimilarityInputDataSet")
    if function in _EMBEDDINGS:
        return InvalidRequest(
            "This pre_process_function can only support TextDocsInputDataSet which including a list of string "
            "with key 'text_docs'"
        )
    known = ", ".join(sorted({**_EMBEDDINGS, **_RERANK}))
    return InvalidRequest(f"There is no built-in pre_process_function [{function}]; there are {known}")


def _array(name: str) -> Callable[[Sequence[str]], dict[str, str]]:
    return lambda texts: {name: JsonText(jsontext.dumps(list(texts)))}


def _first(name: str) -> Callable[[Sequence[str]], dict[str, str]]:
    return lambda texts: {name: texts[0]}


def _text_and_image(texts: Sequence[str]) -> dict[str, str]:
    return dict(zip(("inputText", "inputImage"), texts, strict=False))


def _nova(texts: Sequence[str]) -> dict[str, str]:
    """A text that is a JSON object such as `{"image": "<base64>"}` says what it is; any other is text."""
    try:
        value = json.loads(texts[0])
    except json.JSONDecodeError:
        value = None
    if isinstance(value, dict):
        for name in ("text", "image", "video", "audio"):
            if name in value:
                return {name: jsontext.parameter_of(value[name])}
    return {"text": texts[0]}


def _rerank(query: str, texts: Sequence[str]) -> dict[str, str]:
    return {"query": query, "documents": JsonText(jsontext.dumps(list(texts))), "top_n": JsonText(len(texts))}


def _bedrock_rerank(query: str, texts: Sequence[str]) -> dict[str, str]:
    """https://docs.aws.amazon.com/bedrock/latest/APIReference/API_agent-runtime_Rerank.html"""
    queries = [{"textQuery": {"text": query}, "type": "TEXT"}]
    sources = [
        {"inlineDocumentSource": {"textDocument": {"text": text}, "type": "TEXT"}, "type": "INLINE"} for text in texts
    ]
    return {
        "queries": JsonText(jsontext.dumps(queries)),
        "sources": JsonText(jsontext.dumps(sources)),
        "numberOfResults": JsonText(len(texts)),
    }


_EMBEDDINGS: Mapping[str, _Embedding] = {
    f"{_PREFIX}{name}": embedding
    for name, embedding in {
        "openai.embedding": _Embedding(_array("input")),
        "default.embedding": _Embedding(_array("input")),
        "cohere.embedding": _Embedding(_array("texts")),
        "cohere.multimodal_embedding": _Embedding(_array("images")),
        "bedrock.embedding": _Embedding(_first("inputText"), takes=1),
        "bedrock.multimodal_embedding": _Embedding(_text_and_image, takes=2),
        "bedrock.nova.embedding": _Embedding(_nova, takes=1),
        "bedrock.nova.text_embedding": _Embedding(_first("inputText"), takes=1),
        "bedrock.nova.image_embedding": _Embedding(_first("inputImage"), takes=1),
        "bedrock.nova.video_embedding": _Embedding(_first("inputVideo"), takes=1),
        "bedrock.nova.audio_embedding": _Embedding(_first("inputAudio"), takes=1),
    }.items()
}
_RERANK: Mapping[str, Callable[[str, Sequence[str]], dict[str, str]]] = {
    f"{_PREFIX}cohere.rerank": _rerank,
    f"{_PREFIX}default.rerank": _rerank,
    f"{_PREFIX}bedrock.rerank": _bedrock_rerank,
}
