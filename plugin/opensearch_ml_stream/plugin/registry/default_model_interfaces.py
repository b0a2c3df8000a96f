"""Interfaces that ML Commons itself gives to models of some AWS services, by the connector's parameters.

The schema of the response also depends on the post-process function of the connector's first action. Source: the class
ModelInterfaceUtils of ML Commons.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.plugin.registry.stored_documents import Json

_STRING: Json = {"type": "string"}
_NUMBER: Json = {"type": "number"}
_INTEGER: Json = {"type": "integer"}


def _array(items: Json) -> Json:
    return {"type": "array", "items": items}


def _object(properties: Json, required: Sequence[str] = ()) -> Json:
    schema: Json = {"type": "object", "properties": properties}
    return {**schema, "required": list(required)} if required else schema


def _of_all(**properties: Json) -> Json:
    """Return the schema of an object that has all of its properties."""
    return _object(properties, list(properties))


def _input(parameters: Json, required: Sequence[str] = ()) -> Json:
    """Return the schema of an input; `required` are its required members beside those of its parameters."""
    return _object({"parameters": parameters}, required)


def _output(tensor: Json) -> Json:
    return _of_all(inference_results=_array(_of_all(output=_array(tensor), status_code=_INTEGER)))


def _loose_output(data: Json, status_code: Json) -> Json:
    """Return the schema of a response in which nothing must be."""
    tensor = _object({"name": _STRING, "dataAsMap": data})
    result = _object({"output": _array(tensor), "status_code": status_code})
    return _object({"inference_results": _array(result)})


def _response(**properties: Json) -> Json:
    """Return the schema of a response whose JSON has all of these properties."""
    return _output(_of_all(name=_STRING, dataAsMap=_of_all(**properties)))


@dataclass(frozen=True, slots=True)
class _Preset:
    """A default interface: input and output, and the output `read` of connectors with the function `function`.

    "" stands for any function; names are compared without regard to case.
    """

    input: Json
    output: Json
    function: str | None = None
    read: Json | None = None

    def of(self, post_process_function: str) -> dict[str, str]:
        is_read = bool(post_process_function.strip()) and self.function in ("", post_process_function.lower())
        output = self.read if is_read and self.read is not None else self.output
        return {"input": jsontext.dumps(self.input), "output": jsontext.dumps(output)}


_SAID = _response(response=_STRING)
_EMBEDDINGS = _output(_of_all(name=_STRING, data_type=_STRING, shape=_array(_INTEGER), data=_array(_NUMBER)))
_ASKED = _input(_of_all(inputs=_STRING), ["parameters"])

_AI21_TOKEN = _object({
    "generatedToken": _object({"token": _STRING, "logprob": _NUMBER, "raw_logprob": _NUMBER}),
    "textRange": _object({"start": _NUMBER, "end": _NUMBER}),
})  # fmt: skip
_AI21_TEXT = _object({"text": _STRING, "tokens": _array(_AI21_TOKEN)})
_AI21_FINISH = _object({"reason": _STRING, "length": _NUMBER})
_AI21_COMPLETION = _object({"data": _AI21_TEXT, "finishReason": _AI21_FINISH})
_AI21 = _object({"id": _NUMBER, "prompt": _AI21_TEXT, "completions": _array(_AI21_COMPLETION)})

_TITAN = _response(embedding=_array(_NUMBER), inputTextTokenCount=_INTEGER)
_TITAN_FUNCTION = "connector.post_process.bedrock.embedding"
_COHERE = _Preset(
    _input(_of_all(texts=_array(_STRING))),
    _response(id=_STRING, texts=_array(_STRING), embeddings=_array(_array(_NUMBER)), response_type=_STRING),
    "connector.post_process.cohere.embedding",
    _EMBEDDINGS,
)
_BEDROCK: Mapping[str, _Preset] = {
    "ai21.j2-mid-v1": _Preset(_ASKED, _loose_output(_AI21, _INTEGER), "", _SAID),
    "anthropic.claude-3-sonnet-20240229-v1:0": _Preset(_ASKED, _SAID),
    "anthropic.claude-v2": _Preset(
        _ASKED, _response(type=_STRING, completion=_STRING, stop_reason=_STRING, stop=_STRING)
    ),
    "cohere.embed-english-v3": _COHERE,
    "cohere.embed-multilingual-v3": _COHERE,
    "amazon.titan-embed-text-v1": _Preset(_input(_of_all(inputText=_STRING)), _TITAN, _TITAN_FUNCTION, _EMBEDDINGS),
    "amazon.titan-embed-image-v1": _Preset(
        _input(_object({"inputText": _STRING, "inputImage": _STRING})), _TITAN, _TITAN_FUNCTION, _EMBEDDINGS
    ),
}
_LANGUAGES = _array(_of_all(LanguageCode=_STRING, Score=_NUMBER))
_COMPREHEND: Mapping[str, _Preset] = {
    "DetectDominantLanguage": _Preset(
        _input(_of_all(Text=_STRING), ["parameters"]), _response(response=_of_all(Languages=_LANGUAGES))
    )
}
_BOX = _object({"Height": _NUMBER, "Left": _NUMBER, "Top": _NUMBER, "Width": _NUMBER})
_BLOCK = _object({
    "BlockType": _STRING,
    "Geometry": _object({"BoundingBox": _BOX, "Polygon": _array(_object({"X": _NUMBER, "Y": _NUMBER}))}),
    "Id": _STRING,
    "Relationships": _array(_object({"Ids": _array(_STRING), "Type": _STRING})),
})  # fmt: skip
_DOCUMENT = _object({
    "Blocks": _array(_BLOCK),
    "DetectDocumentTextModelVersion": _STRING,
    "DocumentMetadata": _object({"Pages": _NUMBER}),
})  # fmt: skip
_TEXTRACT = _Preset(_input(_of_all(bytes=_STRING), ["parameters"]), _loose_output(_DOCUMENT, _NUMBER))


def default_interface(parameters: Mapping[str, str], post_process_function: str | None) -> dict[str, str] | None:
    """Return the interface of models whose connector has these parameters, as it is stored; None without a preset.

    The function is that of the connector's first action.
    """
    preset: _Preset | None = None
    match parameters.get("service_name"):
        case "bedrock":
            preset = _BEDROCK.get(parameters.get("model", ""))
        case "comprehend":
            preset = _COMPREHEND.get(parameters.get("api_name", ""))
        case "textract":
            preset = _TEXTRACT
        case _:
            pass
    return None if preset is None else preset.of(post_process_function or "")
