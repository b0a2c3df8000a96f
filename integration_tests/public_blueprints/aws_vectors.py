"""What AWS offers besides text models: embeddings, language detection, text recognition, own models on SageMaker."""

import json
from typing import Any

from integration_tests.provider_dialects.dialect import QUESTION, mapped, vector
from integration_tests.public_blueprints.aws_text import BOTH, HASHED, bedrock
from integration_tests.public_blueprints.body import (
    KEYS,
    ROLE,
    PublicBlueprint,
    calls,
    commented,
    connector,
    row,
    tensors,
    with_a_brace_too_many,
)

TEXTS = ["hello", "wörld!"]
VECTORS = [vector(text) for text in TEXTS]
DOCS = {"text_docs": TEXTS}
ONE = {"text_docs": ["hello"]}
PICTURE = "iVBORw0KGgo="


def _cohere(name: str, model: str, **more: Any) -> list[PublicBlueprint]:
    template = '{ "texts": ${parameters.texts}, "truncate": "${parameters.truncate}", "input_type": "${parameters.input_type}" }'
    sent = {"texts": TEXTS, "truncate": "END", "input_type": "search_document"}
    parameters = {"input_type": "search_document", "truncate": "END"}
    return _embedding(name, model, template, parameters, sent, {"embeddings": VECTORS}, **more)


def _embedding(
    name: str, model: str, template: str, parameters: dict[str, Any], sent: Any, answer: Any, **more: Any
) -> list[PublicBlueprint]:
    """One at Bedrock; `takes` is the whole body of the prediction."""
    takes = more.pop("takes", None)
    rows = bedrock(name, model, template, parameters, sent, answer, headers=HASHED, **more)
    return rows if takes is None else [_asked(one, takes) for one in rows]


def _asked(one: PublicBlueprint, takes: dict[str, Any]) -> PublicBlueprint:
    dialect = calls(
        one.dialect.wholes[0].path, one.dialect.wholes[0].body, one.dialect.wholes[0].answer, takes,
        one.dialect.predicted, aws="bedrock",
    )  # fmt: skip
    return PublicBlueprint(one.name, one.text, dialect, refused=one.refused, needs_painless=one.needs_painless)


def _functions(name: str) -> dict[str, str]:
    return {"pre": f"connector.pre_process.{name}", "post": f"connector.post_process.{name}"}


_TITAN = '{ "inputText": "${parameters.inputText}" }'
_TITAN_2 = (
    '{ "inputText": "${parameters.inputText}", "dimensions": ${parameters.dimensions}, '
    '"normalize": ${parameters.normalize}, "embeddingTypes": ${parameters.embeddingTypes} }'
)
_TITAN_2_PARAMETERS = {"dimensions": 1024, "normalize": True, "embeddingTypes": ["float"]}
_TITAN_SENT = {"inputText": "hello"}
_TITAN_ANSWER = {"embedding": vector("hello"), "inputTextTokenCount": 3}
_TITAN_V1 = "amazon.titan-embed-text-v1"
_TITAN_V2 = "amazon.titan-embed-text-v2:0"
_TENSOR = tensors(vector("hello"))
_PRE = """
    StringBuilder builder = new StringBuilder();
    builder.append("\\"");
    builder.append(params.text_docs[0]);
    builder.append("\\"");
    return "{" + "\\"parameters\\":" + "{" + "\\"inputText\\":" + builder + "}" + "}";"""


def _titan(name: str, standard: bool) -> list[PublicBlueprint]:
    """`standard`: the page for pipelines, which send the provider's own parameters."""
    functions = _functions("bedrock.embedding")
    takes, both, tensor = ({"takes": ONE} if not standard else {}), BOTH, {"predicted": _TENSOR}
    asked = {} if not standard else {"asked": {"inputText": "hello"}}
    arguments = (_TITAN_V1, _TITAN, {}, _TITAN_SENT, _TITAN_ANSWER)
    second = {**_TITAN_SENT, **_TITAN_2_PARAMETERS}
    if standard:
        return [
            *_embedding(name, *arguments, credentials=[KEYS], **functions, **asked, **tensor),
            *_embedding(f"{name} without functions", *arguments, credentials=[ROLE], **asked),
            *with_a_brace_too_many(
                _embedding(
                    f"{name} v2", _TITAN_V2, _TITAN_2, _TITAN_2_PARAMETERS, second, _TITAN_ANSWER,
                    credentials=[KEYS], **asked,
                )
            ),
        ]  # fmt: skip
    return [
        *_embedding(name, *arguments, credentials=both, **functions, **takes, **tensor),
        *_embedding(f"{name}, Painless", *arguments, credentials=[ROLE], pre=_PRE, **takes),
        *_embedding(
            f"{name} v2", _TITAN_V2, _TITAN_2, _TITAN_2_PARAMETERS, second, _TITAN_ANSWER,
            credentials=[KEYS], **functions, **takes, **tensor,
        ),
    ]  # fmt: skip


_PAIR = '{"inputText": "${parameters.inputText:-null}", "inputImage": "${parameters.inputImage:-null}"}'
_PAIR_SENT = {"inputText": "hello", "inputImage": PICTURE}


def _titan_image(name: str, **more: Any) -> list[PublicBlueprint]:
    parameters = {"input_docs_processed_step_size": 2}
    return _embedding(name, "amazon.titan-embed-image-v1", _PAIR, parameters, _PAIR_SENT, _TITAN_ANSWER, **more)


_NOVA_ALL = {
    "text": {"truncationMode": "${parameters.truncationMode:-null}", "value": "${parameters.text:-null}"},
    "image": {
        "detailLevel": "${parameters.detailLevel:-null}",
        "format": "${parameters.imageFormat:-null}",
        "source": {"bytes": "${parameters.image:-null}"},
    },
    "video": {
        "format": "${parameters.videoFormat:-null}",
        "source": {"bytes": "${parameters.video:-null}"},
        "embeddingMode": "${parameters.embeddingMode:-null}",
    },
    "audio": {"format": "${parameters.audioFormat:-null}", "source": {"bytes": "${parameters.audio:-null}"}},
}


def _nova(kind: str, purpose: str, part: dict[str, Any], sent: dict[str, Any], text: str) -> list[PublicBlueprint]:
    def body(dimensions: Any, values: dict[str, Any]) -> dict[str, Any]:
        single = {"embeddingPurpose": purpose, "embeddingDimension": dimensions, **values}
        return {"taskType": "SINGLE_EMBEDDING", "singleEmbeddingParams": single}

    template = json.dumps(body("$DIMENSIONS", part)).replace('"$DIMENSIONS"', "${parameters.dimensions}")
    parameters = {
        **{"dimensions": 1024, "truncationMode": "END", "imageFormat": "png", "detailLevel": "STANDARD_IMAGE"},
        **{"videoFormat": "mp4", "embeddingMode": "AUDIO_VIDEO_COMBINED", "audioFormat": "mp3"},
        "input_docs_processed_step_size": 1,
    }
    name = "bedrock.nova.embedding" if kind == "any" else f"bedrock.nova.{kind}_embedding"
    rows = _embedding(
        f"nova {kind}",
        "amazon.nova-2-multimodal-embeddings-v1:0",
        template,
        parameters,
        body(1024, sent),
        {"embeddings": [{"embeddingType": kind.upper(), "embedding": vector("hello")}]},
        pre=f"connector.pre_process.{name}",
        post="connector.post_process.bedrock.nova.embedding",
        takes={"text_docs": [text]},
        predicted=_TENSOR,
        credentials=(*BOTH, ROLE) if kind == "audio" else BOTH,
    )
    return commented(rows) if kind == "any" else rows


def _aws(name: str, service: str, template: str, own: dict[str, Any], asked: Any, sent: Any) -> list[PublicBlueprint]:
    """Comprehend and Textract: one URL, the operation is a header."""
    answer = {"Languages": [{"LanguageCode": "en", "Score": 0.9}]}
    body = connector(
        name,
        "https://${parameters.service_name}.${parameters.region}.amazonaws.com",
        template,
        {"region": "us-east-1", "service_name": service, **own},
        KEYS,
        protocol="aws_sigv4",
        headers={"X-Amz-Target": "${parameters.api}", "content-type": "application/x-amz-json-1.1"},
    )
    headers = {"X-Amz-Target": own["api"], "content-type": "application/x-amz-json-1.1"}
    return row(name, body, calls("/", sent, answer, {"parameters": asked}, aws=service, headers=headers), BOTH)


_COMPREHEND = {"api_version": "20171127", "response_filter": "$"}
_SAGEMAKER = {"region": "us-east-1", "service_name": "sagemaker"}
_RUNTIME = "https://runtime.sagemaker.us-east-1.amazonaws.com/endpoints"
_TRANSFORM = {
    "action_type": "batch_predict",
    "method": "POST",
    "headers": {"content-type": "application/json"},
    "url": "https://api.sagemaker.us-east-1.amazonaws.com/CreateTransformJob",
    "request_body": '{ "BatchStrategy": "${parameters.BatchStrategy}", "ModelName": "${parameters.ModelName}" }',
}
_HIGHLIGHT_PRE = """
    if (params.question != null && params.context != null) {
        return '{"parameters":{"question":"' + params.question + '","context":"' + params.context + '"}}';
    }
    if (params.inputs != null) { return '{"parameters":{"inputs":' + params.inputs.toString() + '}}'; }
    throw new IllegalArgumentException("question and context, or inputs");"""


def _sagemaker(name: str, url: str, template: str, dialect: Any, **more: Any) -> list[PublicBlueprint]:
    parameters = {**_SAGEMAKER, **more.pop("parameters", {})}
    rows: dict[str, Any] = {key: more.pop(key) for key in ("stream_says",) if key in more}
    body = connector(name, url, template, parameters, KEYS, protocol="aws_sigv4", **more)
    return row(name, body, dialect, **rows)


def _colpali() -> list[PublicBlueprint]:
    """A model with its connector inline."""
    queries = {"queries": ["hello"]}
    sagemaker = connector(
        "colpali", f"{_RUNTIME}/{{{{endpoint_name}}}}/invocations", "${parameters.inputs}", _SAGEMAKER, KEYS,
        protocol="aws_sigv4",
    )  # fmt: skip
    answer = {"query_embeddings": [[vector("hello")]]}
    dialect = calls("/endpoints/my-endpoint/invocations", queries, answer, {"parameters": {"inputs": queries}}, aws="sagemaker")
    rows = []
    for credential, refused in ((KEYS, None), (ROLE, "Missing credential")):
        model = {"name": "colpali", "function_name": "remote", "connector": {**sagemaker, "credential": credential}}
        kind = "" if refused is None else " with a role"
        text = json.dumps(model, indent=2)
        # Nothing tells from outside that this one makes vectors; the fake refuses its stream, as a container may.
        rows.append(PublicBlueprint(f"colpali{kind}", text, dialect, True, refused, stream_says="path is"))
    return rows


BLUEPRINTS: list[PublicBlueprint] = [
    *_aws(
        "comprehend language",
        "comprehend",
        '{ "Text": "${parameters.Text}"}',
        {**_COMPREHEND, "api": "Comprehend_20171127.DetectDominantLanguage"},
        {"Text": QUESTION},
        {"Text": QUESTION},
    ),
    *_aws(
        "comprehend entities",
        "comprehend",
        '{ "Text": "${parameters.Text}", "LanguageCode": "${parameters.LanguageCode}"}',
        {**_COMPREHEND, "api": "Comprehend_20171127.DetectEntities"},
        {"Text": QUESTION, "LanguageCode": "en"},
        {"Text": QUESTION, "LanguageCode": "en"},
    ),
    *_aws(
        "textract",
        "textract",
        '{ "Document": { "Bytes": "${parameters.bytes}" } }',
        {"api": "Textract.DetectDocumentText"},
        {"bytes": PICTURE},
        {"Document": {"Bytes": PICTURE}},
    ),
    *_cohere(
        "cohere english", "cohere.embed-english-v3", **_functions("cohere.embedding"), takes=DOCS,
        predicted=tensors(*VECTORS),
    ),
    *_cohere(
        "cohere multilingual", "cohere.embed-multilingual-v3", **_functions("cohere.embedding"), takes=DOCS,
        predicted=tensors(*VECTORS),
    ),
    *_cohere("cohere english, standard", "cohere.embed-english-v3", asked={"texts": TEXTS}),
    *_cohere("cohere multilingual, standard", "cohere.embed-multilingual-v3", asked={"texts": TEXTS}),
    *_titan("titan", standard=False),
    *_titan("titan, standard", standard=True),
    *_titan_image(
        "titan image",
        pre="connector.pre_process.bedrock.multimodal_embedding",
        post="connector.post_process.bedrock.embedding",
        takes={"text_docs": ["hello", PICTURE]},
        predicted=_TENSOR,
    ),
    *_titan_image("titan image, standard", credentials=[KEYS], asked={"inputText": "hello", "inputImage": PICTURE}),
    *_nova("any", "GENERIC_INDEX", _NOVA_ALL, {"text": {"truncationMode": "END", "value": "hello"}}, '{"text":"hello"}'),
    *_nova(
        "text",
        "GENERIC_INDEX",
        {"text": {"truncationMode": "${parameters.truncationMode}", "value": "${parameters.inputText}"}},
        {"text": {"truncationMode": "END", "value": "hello"}},
        "hello",
    ),
    *_nova(
        "image",
        "IMAGE_RETRIEVAL",
        {
            "image": {
                "format": "${parameters.imageFormat}",
                "detailLevel": "${parameters.detailLevel}",
                "source": {"bytes": "${parameters.inputImage}"},
            }
        },
        {"image": {"format": "png", "detailLevel": "STANDARD_IMAGE", "source": {"bytes": PICTURE}}},
        PICTURE,
    ),
    *_nova(
        "video",
        "VIDEO_RETRIEVAL",
        {
            "video": {
                "format": "${parameters.videoFormat}",
                "embeddingMode": "${parameters.embeddingMode}",
                "source": {"bytes": "${parameters.inputVideo}"},
            }
        },
        {"video": {"format": "mp4", "embeddingMode": "AUDIO_VIDEO_COMBINED", "source": {"bytes": "AAAA"}}},
        "AAAA",
    ),
    *_nova(
        "audio",
        "AUDIO_RETRIEVAL",
        {"audio": {"format": "${parameters.audioFormat}", "source": {"bytes": "${parameters.inputAudio}"}}},
        {"audio": {"format": "mp3", "source": {"bytes": "AAAA"}}},
        "AAAA",
    ),
    *_sagemaker(
        "sagemaker batch",
        f"{_RUNTIME}/OpenSearch-sagemaker-060124023703/invocations",
        "${parameters.input}",
        calls(
            "/endpoints/OpenSearch-sagemaker-060124023703/invocations", TEXTS, VECTORS, DOCS, tensors(*VECTORS),
            aws="sagemaker",
        ),
        further_actions=[_TRANSFORM],
        parameters={"DataProcessing": {"InputFilter": "$.text"}, "ModelName": "m", "BatchStrategy": "SingleRecord"},
        **_functions("default.embedding"),
    ),
    *commented(
        _sagemaker(
            "sagemaker",
            "<PLEASE ADD YOUR Sagemaker MODEL INFERENCE ENDPOINT URL>",
            "${parameters.input}",
            calls("/invocations", TEXTS, VECTORS, DOCS, tensors(*VECTORS), aws="sagemaker"),
            **_functions("default.embedding"),
        )
    ),
    *_colpali(),
    *_sagemaker(
        "semantic highlighter",
        "https://runtime.sagemaker.${parameters.region}.amazonaws.com/endpoints/${parameters.model}/invocations",
        '{ "question": "${parameters.question:-}", "context": "${parameters.context:-}", "inputs": ${parameters.inputs:-[]} }',
        calls(
            "/endpoints/highlighter/invocations",
            {"question": QUESTION, "context": "It is 42.", "inputs": []},
            {"highlights": [{"start": 0, "end": 9}]},
            {"parameters": {"question": QUESTION, "context": "It is 42."}},
            mapped({"highlights": [{"start": 0, "end": 9}]}),
            aws="sagemaker",
        ),
        parameters={"model": "highlighter"},
        pre=_HIGHLIGHT_PRE,
    ),
]  # fmt: skip
