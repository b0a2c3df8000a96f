"""The interfaces of known AWS models: what they let in and what they promise, as those of ML Commons."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.predict.inputs import PredictInput, RemoteInput, TextDocsInput
from opensearch_ml_stream.connectors.predict.model_interface import InterfaceSchema
from opensearch_ml_stream.plugin.registry.default_model_interfaces import default_interface

J2, SONNET, CLAUDE = "ai21.j2-mid-v1", "anthropic.claude-3-sonnet-20240229-v1:0", "anthropic.claude-v2"
COHERE = ("cohere.embed-english-v3", "cohere.embed-multilingual-v3")
TITAN, TITAN_IMAGE = "amazon.titan-embed-text-v1", "amazon.titan-embed-image-v1"
LANGUAGE = {"service_name": "comprehend", "api_name": "DetectDominantLanguage"}
TEXTRACT = {"service_name": "textract"}
OF_COHERE, OF_TITAN = "connector.post_process.cohere.embedding", "connector.post_process.bedrock.embedding"


def bedrock(model: str) -> dict[str, str]:
    return {"service_name": "bedrock", "model": model}


def schemas(parameters: Mapping[str, str], function: str | None = None) -> dict[str, InterfaceSchema]:
    interface = default_interface(parameters, function)
    assert interface is not None
    assert list(interface) == ["input", "output"]
    return {side: InterfaceSchema.compile(text, side) for side, text in interface.items()}


def takes(schema: InterfaceSchema, given: PredictInput) -> bool:
    try:
        schema.validate_input(given, [given.parameters])
    except InvalidRequest:
        return False
    return True


def keeps(schema: InterfaceSchema, response: Any) -> bool:
    try:
        schema.validate(response)
    except InvalidRequest:
        return False
    return True


def response(*output: Any) -> dict[str, Any]:
    return {"inference_results": [{"output": list(output), "status_code": 200}]}


def said(**data: Any) -> dict[str, Any]:
    return response({"name": "response", "dataAsMap": data})


@pytest.mark.parametrize(
    ("parameters", "good", "bad", "takes_texts"),
    [
        *[(bedrock(model), [{"inputs": "a"}], [{}, {"prompt": "a"}], False)
          for model in (J2, SONNET, CLAUDE)],
        *[(bedrock(model), [{"texts": '["a"]'}], [{}, {"texts": "a"}, {"texts": "[1]"}], True) for model in COHERE],
        (bedrock(TITAN), [{"inputText": "1"}], [{}, {"inputImage": "a"}], True),
        (bedrock(TITAN_IMAGE), [{"inputText": "a"}, {"inputImage": "a"}, {"inputText": "a", "inputImage": "b"}, {}],
         [], True),
        (LANGUAGE, [{"Text": "a"}], [{}], False),
        (TEXTRACT, [{"bytes": "a"}], [{}], False),
    ],
)  # fmt: skip
def test_an_input_has_what_the_model_needs(
    parameters: dict[str, str], good: Sequence[dict[str, str]], bad: Sequence[dict[str, str]], takes_texts: bool
) -> None:
    schema = schemas(parameters)["input"]
    assert [takes(schema, RemoteInput(one)) for one in (*good, *bad)] == [True] * len(good) + [False] * len(bad)
    assert takes(schema, TextDocsInput(("a",))) == takes_texts


_TENSOR = {"name": "sentence_embedding", "data_type": "FLOAT32", "shape": [2], "data": [1, 0.5]}
_EMBEDDINGS = (response(_TENSOR, _TENSOR), response({**_TENSOR, "data": ["a"]}))
_SAID = (said(response="a"), said(content=[]))
_OF_CLAUDE = {"type": "completion", "completion": "a", "stop_reason": "stop_sequence", "stop": "\n"}
_OF_TITAN = {"embedding": [1, 0.5], "inputTextTokenCount": 1}
_RAW_COHERE = {"id": "1", "texts": ["a"], "embeddings": [[1, 0.5]], "response_type": "embeddings_floats"}
_LANGUAGE = {"Languages": [{"LanguageCode": "en", "Score": 0.5}]}
_TOKEN = {"generatedToken": {"token": "a", "logprob": 1, "raw_logprob": 1}, "textRange": {"start": 0, "end": 1}}
_TEXT = {"text": "a", "tokens": [_TOKEN]}
_FINISH = {"reason": "length", "length": 1}
_BLOCK = {
    "BlockType": "LINE",
    "Geometry": {"BoundingBox": {"Height": 1, "Left": 0, "Top": 0, "Width": 1}, "Polygon": [{"X": 0, "Y": 1}]},
    "Id": "1",
    "Relationships": [{"Ids": ["2"], "Type": "CHILD"}],
}


@pytest.mark.parametrize(
    ("parameters", "function", "good", "bad"),
    [
        (bedrock(J2), "return params.x", *_SAID),
        (bedrock(J2), " ", said(id=1, prompt=_TEXT, completions=[{"data": _TEXT, "finishReason": _FINISH}]),
         said(completions=[{"data": {"tokens": [{"textRange": {"start": "0"}}]}}])),
        (bedrock(SONNET), None, *_SAID),
        (bedrock(CLAUDE), "return params.x", said(**_OF_CLAUDE), said(completion="a")),
        *[(bedrock(model), OF_COHERE.upper(), *_EMBEDDINGS) for model in COHERE],
        *[(bedrock(model), OF_TITAN, said(**_RAW_COHERE), said(embeddings=[[1]])) for model in COHERE],
        (bedrock(TITAN), OF_TITAN, *_EMBEDDINGS),
        (bedrock(TITAN), None, said(**_OF_TITAN), said(embedding=[1])),
        (bedrock(TITAN_IMAGE), OF_TITAN, *_EMBEDDINGS),
        (bedrock(TITAN_IMAGE), OF_COHERE, said(**_OF_TITAN), said(**{**_OF_TITAN, "inputTextTokenCount": "1"})),
        (LANGUAGE, None, said(response=_LANGUAGE), said(response={"Languages": [{"LanguageCode": "en"}]})),
        (TEXTRACT, OF_TITAN, said(Blocks=[_BLOCK], DetectDocumentTextModelVersion="1", DocumentMetadata={"Pages": 1}),
         said(Blocks=[{**_BLOCK, "Relationships": [{"Ids": [1]}]}])),
    ],
)  # fmt: skip
def test_what_comes_back_follows_from_the_model_and_the_post_process_function(
    parameters: dict[str, str], function: str | None, good: Any, bad: Any
) -> None:
    schema = schemas(parameters, function)["output"]
    assert (keeps(schema, good), keeps(schema, bad)) == (True, False)


def test_only_where_a_response_may_lack_everything_nothing_is_required() -> None:
    loose = [bedrock(J2), TEXTRACT]
    strict = [bedrock(SONNET), bedrock(CLAUDE), bedrock(TITAN), *map(bedrock, COHERE), LANGUAGE]
    assert [keeps(schemas(parameters)["output"], {}) for parameters in (*loose, *strict)] == [True] * 2 + [False] * 6


@pytest.mark.parametrize(
    "parameters",
    [{}, {"service_name": "comprehend"}, bedrock("other"), {"service_name": "bedrock"}, {"model": TITAN}],
)
def test_no_other_model_gets_one(parameters: dict[str, str]) -> None:
    assert default_interface(parameters, OF_TITAN) is None


def test_a_schema_is_written_as_json() -> None:
    interface = default_interface(bedrock(TITAN_IMAGE), None)
    assert interface is not None
    string = {"type": "string"}
    parameters = {"type": "object", "properties": {"inputText": string, "inputImage": string}}
    assert json.loads(interface["input"]) == {"type": "object", "properties": {"parameters": parameters}}
