"""Pre-processing: turn a predict input into the parameters of provider calls, by the action's `pre_process_function`.

The name of a built-in function begins with `connector.pre_process.`; any other text is Painless source. The connector's
`input_docs_processed_step_size` is the number of texts in one call. Without it, a function that can send only so many
texts (`_Embedding.max_texts`) gets that many, Painless gets one, and all others get every text.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
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
    define_escape,
    fill_parameters,
    parse_result,
)
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.connectors.syntax.jsontext import JsonText

MAX_CALLS = 1_000  # of one prediction
TEXTS = ("input", "inputs", "texts", "prompt", "question")  # what templates name the place for their texts
STEP_SIZE = "input_docs_processed_step_size"
MAX_SIZE_CHARS = 18
_PREFIX = "connector.pre_process."
_DEFAULT = f"{_PREFIX}default.embedding"
_PROCESS_REMOTE = "pre_process_function.process_remote_inference_input"
_TO_OBJECT = "pre_process_function.convert_remote_inference_param_to_object"
_TO_STRING = "pre_process_function.convert_input_to_json_string"


@dataclass(frozen=True, slots=True)
class Step:
    """One provider call: the parameters to lay over the connector's.

    Its response has an embedding or a score for each of its `inputs`; None where it may have any number of them, as
    where a script has made one of several texts.
    """

    parameters: Mapping[str, str]
    inputs: int | None = None


@dataclass(frozen=True, slots=True)
class ScriptStep:
    """One provider call whose parameters a script has to make first; `finish_step` then makes it a Step."""

    call: PainlessCall
    parameters: Mapping[str, str]  # the request's own, which win over the script's


@dataclass(frozen=True, slots=True)
class _Embedding:
    """A built-in function for texts. `max_texts` is how many of them one call can send, None for any number.

    `is_of_each` is whether each text gets one embedding: a text with its image has one, and a video may have two.
    """

    parameters: Callable[[Sequence[str]], dict[str, str]]
    max_texts: int | None = None
    is_of_each: bool = True


def plan_steps(
    action: Action, connector_parameters: Mapping[str, str], predict_input: PredictInput
) -> list[Step | ScriptStep]:
    """Return the provider calls of a predict request, in the order of their results.

    InvalidRequest if the action's function is unknown or does not take this kind of input.
    """
    own = predict_input.parameters
    function = action.pre_process_function
    if function is not None:
        function = fill_parameters(function, {**connector_parameters, **own}).strip()
    if function and not function.startswith(_PREFIX):
        return _script_steps(function, connector_parameters, predict_input)
    if isinstance(predict_input, RemoteInput):
        return [Step(own, _count_listed(action, function, own))]
    if isinstance(predict_input, TextDocsInput):
        embedding = _embedding(function)
        return [
            _step(embedding.parameters(texts), own, len(texts) if embedding.is_of_each else None)
            for texts in split_texts(predict_input.text_docs, step_size(connector_parameters), embedding.max_texts)
        ]
    if not function:
        raise InvalidRequest("pre_process_function not defined in connector")
    if isinstance(predict_input, TextSimilarityInput) and function in _RERANK:
        texts = predict_input.text_docs
        return [_step(_RERANK[function](predict_input.query_text, texts), own, len(texts))]
    raise _wrong_input(function)


def _step(made: Mapping[str, str], own: Mapping[str, str], inputs: int | None) -> Step:
    """Return the call with what a function has made; the request's own parameters win, and change what it is about."""
    return Step({**made, **own}, inputs if own.keys().isdisjoint(made) else None)


def takes_texts(action: Action, free: Collection[str]) -> bool:
    """Whether an action is for texts, which its function makes parameters of; `free` are those of its templates.

    Without a function, texts go to the parameter `input`.
    """
    function = action.pre_process_function
    return "input" in free if not function else function.strip() not in _RERANK


def ranks_texts(action: Action) -> bool:
    """Whether an action's function makes parameters of a query and texts to rank."""
    return (action.pre_process_function or "").strip() in _RERANK


def text_parameter(action: Action) -> str | None:
    """Return the parameter that an action's function makes of texts; None for a script, and where it makes several."""
    embedding = _EMBEDDINGS.get((action.pre_process_function or _DEFAULT).strip())
    names = [] if embedding is None or not embedding.is_of_each else list(embedding.parameters(("",)))
    return names[0] if len(names) == 1 else None


def find_list_parameter(action: Action, connector_parameters: Mapping[str, str], own: Mapping[str, str]) -> str | None:
    """Return the parameter for all texts of a request with the parameters `own`, None where a call takes but some."""
    function = fill_parameters(action.pre_process_function or "", {**connector_parameters, **own}).strip()
    embedding = _EMBEDDINGS.get(function or _DEFAULT)
    return None if embedding is None or embedding.max_texts is not None else next(iter(embedding.parameters(())))


def finish_step(step: ScriptStep, result: str | None) -> Step:
    """Return the call with the parameters in a script's result, a JSON object with an object `parameters`.

    InvalidRequest if the result is not such an object.
    """
    if result is None:
        raise InvalidRequest("Preprocess function output is null")
    value = parse_result(result, "pre_process_function")
    parameters = value.get("parameters", {}) if isinstance(value, dict) else None
    if not isinstance(parameters, dict):
        raise InvalidRequest("The connector's pre_process_function must return a JSON object with an object parameters")
    return Step({**{name: jsontext.to_parameter(item) for name, item in parameters.items()}, **step.parameters})


def step_size(connector_parameters: Mapping[str, str]) -> int | None:
    """Return the number of texts that the connector sends in one call, None if its parameters do not set it."""
    size = connector_parameters.get(STEP_SIZE)
    if size is None:
        return None
    if not size.strip().isdecimal() or len(size) > MAX_SIZE_CHARS or int(size) == 0:
        raise InvalidRequest(f"Invalid parameter: {STEP_SIZE}. It must be positive integer.")
    return int(size)


def split_texts(texts: Sequence[str], size: int | None, max_texts: int | None = None) -> list[Sequence[str]]:
    """Return the texts in groups of `size`, but never of more than `max_texts`, so that no call loses any."""
    group = min(size or len(texts), max_texts or len(texts))
    if len(texts) > MAX_CALLS * group:
        raise InvalidRequest(
            f"{len(texts)} texts, {group} in a call, need more than {MAX_CALLS} calls of the provider. Send fewer "
            f"texts, or set {STEP_SIZE} in the connector's parameters"
        )
    return [texts[start : start + group] for start in range(0, len(texts), group)]


def _script_steps(
    function: str, connector_parameters: Mapping[str, str], predict_input: PredictInput
) -> list[Step | ScriptStep]:
    source = define_escape(function)
    own = predict_input.parameters
    options = {**connector_parameters, **own}
    if isinstance(predict_input, RemoteInput):
        if not _is_true(options, _PROCESS_REMOTE):
            return [Step(own)]
        values = _parse_containers(own) if _is_true(options, _TO_OBJECT) else own
        # ML Commons' scripts read them from `params` itself, scripts for the other inputs from `params.parameters`.
        return [ScriptStep(PainlessCall(source, {**values, "parameters": values}), own)]
    to_string = _is_true(options, _TO_STRING)
    return [
        ScriptStep(PainlessCall(source, _to_strings(params) if to_string else params), own)
        for params in _script_params(predict_input, connector_parameters)
    ]


def _script_params(predict_input: PredictInput, connector_parameters: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the `params` of a script, once for each call. Texts are escaped, since scripts put them in quotes."""
    own = {"parameters": dict(predict_input.parameters)} if predict_input.parameters else {}
    if isinstance(predict_input, TextDocsInput):
        return [
            {"algorithm": "TEXT_EMBEDDING", "text_docs": [jsontext.escape(text) for text in texts], **own}
            for texts in split_texts(predict_input.text_docs, step_size(connector_parameters) or 1)
        ]
    if isinstance(predict_input, TextSimilarityInput):
        texts = [jsontext.escape(text) for text in predict_input.text_docs]
        query = jsontext.escape(predict_input.query_text)
        return [{"algorithm": "TEXT_SIMILARITY", "query_text": query, "text_docs": texts, **own}]
    if isinstance(predict_input, QuestionAnsweringInput):
        question, context = predict_input.question, predict_input.context
        return [{"algorithm": "QUESTION_ANSWERING", "question": question, "context": context, **own}]
    return [{"algorithm": "REMOTE", **own}]


def _count_listed(action: Action, function: str | None, own: Mapping[str, str]) -> int | None:
    """Return how many texts the caller has listed itself, in the parameter that the action's function would make.

    Without a function it is one of those that templates have for texts.
    """
    if not action.post_process_function:
        return None
    names: Iterable[str] = TEXTS
    if function:
        embedding = _EMBEDDINGS.get(function)
        names = () if embedding is None or embedding.max_texts is not None else embedding.parameters(())
    for name in names:
        given = jsontext.value_or_text(own.get(name, ""))
        if isinstance(given, list) and set(map(type, given)) == {str}:
            return len(given)
    return None


def _parse_containers(parameters: Mapping[str, str]) -> dict[str, Any]:
    return {
        name: jsontext.value_or_text(text) if isinstance(text, JsonText) or jsontext.is_container(text) else text
        for name, text in parameters.items()
    }


def _to_strings(params: Mapping[str, Any]) -> dict[str, str]:
    return {name: jsontext.to_text(value) for name, value in params.items()}


def _is_true(parameters: Mapping[str, str], name: str) -> bool:
    return parameters.get(name, "").lower() == "true"


def _embedding(function: str | None) -> _Embedding:
    name = function or _DEFAULT
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
    names = ", ".join(sorted({**_EMBEDDINGS, **_RERANK}))
    return InvalidRequest(f"There is no built-in pre_process_function [{function}]; there are {names}")


def _array(name: str) -> Callable[[Sequence[str]], dict[str, str]]:
    return lambda texts: {name: _json_array(texts)}


def _json_array(texts: Iterable[str]) -> JsonText:
    """Return the texts as a JSON array, as `jsontext.dumps` does for a list, which takes longer for a few strings."""
    return JsonText(f"[{','.join(map(jsontext.quote, texts))}]")


def _first(name: str) -> Callable[[Sequence[str]], dict[str, str]]:
    return lambda texts: {name: texts[0]}


def _text_and_image(texts: Sequence[str]) -> dict[str, str]:
    return dict(zip(("inputText", "inputImage"), texts, strict=False))


def _nova(texts: Sequence[str]) -> dict[str, str]:
    """Return the parameter in a text that is a JSON object such as `{"image": "<base64>"}`, else `text` itself."""
    value = jsontext.value_or_text(texts[0])
    if isinstance(value, dict):
        for name in ("text", "image", "video", "audio"):
            if name in value:
                return {name: jsontext.to_parameter(value[name])}
    return {"text": texts[0]}


def _rerank(query: str, texts: Sequence[str]) -> dict[str, str]:
    return {"query": query, "documents": _json_array(texts), "top_n": JsonText(len(texts))}


def _bedrock_rerank(query: str, texts: Sequence[str]) -> dict[str, str]:
    """See https://docs.aws.amazon.com/bedrock/latest/APIReference/API_agent-runtime_Rerank.html."""
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
        "bedrock.embedding": _Embedding(_first("inputText"), max_texts=1),
        "bedrock.multimodal_embedding": _Embedding(_text_and_image, max_texts=2, is_of_each=False),
        "bedrock.nova.embedding": _Embedding(_nova, max_texts=1, is_of_each=False),
        "bedrock.nova.text_embedding": _Embedding(_first("inputText"), max_texts=1),
        "bedrock.nova.image_embedding": _Embedding(_first("inputImage"), max_texts=1),
        "bedrock.nova.video_embedding": _Embedding(_first("inputVideo"), max_texts=1, is_of_each=False),
        "bedrock.nova.audio_embedding": _Embedding(_first("inputAudio"), max_texts=1),
    }.items()
}
_RERANK: Mapping[str, Callable[[str, Sequence[str]], dict[str, str]]] = {
    f"{_PREFIX}cohere.rerank": _rerank,
    f"{_PREFIX}default.rerank": _rerank,
    f"{_PREFIX}bedrock.rerank": _bedrock_rerank,
}
