"""Embedding models at Amazon Bedrock."""

import json
from typing import Any

from integration_tests.interop.provider_dialects.dialect import vector
from integration_tests.interop.public_blueprints.aws_text import BOTH, HASHED, bedrock
from integration_tests.interop.public_blueprints.body import (
    KEYS,
    ROLE,
    PublicBlueprint,
    calls,
    commented,
    tensors,
    with_a_brace_too_many,
)

TEXTS = ["hello", "wörld!"]
VECTORS = [vector(text) for text in TEXTS]
DOCS = {"text_docs": TEXTS}
ONE = {"text_docs": ["hello"]}
PICTURE = "iVBORw0KGgo="


def _cohere(name: str, model: str, **more: Any) -> list[PublicBlueprint]:
    template = (
        '{ "texts": ${parameters.texts}, "truncate": "${parameters.truncate}", '
        '"input_type": "${parameters.input_type}" }'
    )
    sent = {"texts": TEXTS, "truncate": "END", "input_type": "search_document"}
    parameters = {"input_type": "search_document", "truncate": "END"}
    return _embedding(name, model, template, parameters, sent, {"embeddings": VECTORS}, **more)


def _embedding(name: str, *call: Any, **more: Any) -> list[PublicBlueprint]:
    """One at Bedrock: `call` as in `bedrock`; `prediction` is the whole body of the prediction."""
    prediction = more.pop("prediction", None)
    rows = bedrock(name, *call, headers=HASHED, **more)
    return rows if prediction is None else [_with_prediction(one, prediction) for one in rows]


def _with_prediction(one: PublicBlueprint, prediction: dict[str, Any]) -> PublicBlueprint:
    dialect = calls(
        one.dialect.wholes[0].path, one.dialect.wholes[0].body, one.dialect.wholes[0].response, prediction,
        one.dialect.predicted, aws="bedrock",
    )  # fmt: skip
    return PublicBlueprint(one.name, one.text, dialect, refused=one.refused, needs_painless=one.needs_painless)


def functions(name: str) -> dict[str, Any]:
    return {"pre": f"connector.pre_process.{name}", "post": f"connector.post_process.{name}"}


_TITAN = '{ "inputText": "${parameters.inputText}" }'
_TITAN_2 = (
    '{ "inputText": "${parameters.inputText}", "dimensions": ${parameters.dimensions}, '
    '"normalize": ${parameters.normalize}, "embeddingTypes": ${parameters.embeddingTypes} }'
)
_TITAN_2_PARAMETERS = {"dimensions": 1024, "normalize": True, "embeddingTypes": ["float"]}
_TITAN_SENT = {"inputText": "hello"}
_TITAN_RESPONSE = {"embedding": vector("hello"), "inputTextTokenCount": 3}
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
    vectors = functions("bedrock.embedding")
    more: dict[str, Any] = {"prediction_parameters": {"inputText": "hello"}} if standard else {"prediction": ONE}
    tensor: dict[str, Any] = {"predicted": _TENSOR}
    arguments: tuple[Any, ...] = (_TITAN_V1, _TITAN, {}, _TITAN_SENT, _TITAN_RESPONSE)
    second = {**_TITAN_SENT, **_TITAN_2_PARAMETERS}
    if standard:
        return [
            *_embedding(name, *arguments, credentials=[KEYS], **vectors, **more, **tensor),
            *_embedding(f"{name} without functions", *arguments, credentials=[ROLE], **more),
            *with_a_brace_too_many(
                _embedding(
                    f"{name} v2", _TITAN_V2, _TITAN_2, _TITAN_2_PARAMETERS, second, _TITAN_RESPONSE,
                    credentials=[KEYS], **more,
                )
            ),
        ]  # fmt: skip
    return [
        *_embedding(name, *arguments, credentials=BOTH, **vectors, **more, **tensor),
        *_embedding(f"{name}, Painless", *arguments, credentials=[ROLE], pre=_PRE, **more),
        *_embedding(
            f"{name} v2", _TITAN_V2, _TITAN_2, _TITAN_2_PARAMETERS, second, _TITAN_RESPONSE,
            credentials=[KEYS], **vectors, **more, **tensor,
        ),
    ]  # fmt: skip


_PAIR = '{"inputText": "${parameters.inputText:-null}", "inputImage": "${parameters.inputImage:-null}"}'
_PAIR_SENT = {"inputText": "hello", "inputImage": PICTURE}


def _titan_image(name: str, **more: Any) -> list[PublicBlueprint]:
    parameters = {"input_docs_processed_step_size": 2}
    return _embedding(name, "amazon.titan-embed-image-v1", _PAIR, parameters, _PAIR_SENT, _TITAN_RESPONSE, **more)


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
        prediction={"text_docs": [text]},
        predicted=_TENSOR,
        credentials=(*BOTH, ROLE) if kind == "audio" else BOTH,
    )
    return commented(rows) if kind == "any" else rows


BLUEPRINTS: list[PublicBlueprint] = [
    *_cohere(
        "cohere english", "cohere.embed-english-v3", **functions("cohere.embedding"), prediction=DOCS,
        predicted=tensors(*VECTORS),
    ),
    *_cohere(
        "cohere multilingual", "cohere.embed-multilingual-v3", **functions("cohere.embedding"), prediction=DOCS,
        predicted=tensors(*VECTORS),
    ),
    *_cohere("cohere english, standard", "cohere.embed-english-v3", prediction_parameters={"texts": TEXTS}),
    *_cohere("cohere multilingual, standard", "cohere.embed-multilingual-v3", prediction_parameters={"texts": TEXTS}),
    *_titan("titan", standard=False),
    *_titan("titan, standard", standard=True),
    *_titan_image(
        "titan image",
        pre="connector.pre_process.bedrock.multimodal_embedding",
        post="connector.post_process.bedrock.embedding",
        prediction={"text_docs": ["hello", PICTURE]},
        predicted=_TENSOR,
    ),
    *_titan_image(
        "titan image, standard",
        credentials=[KEYS],
        prediction_parameters={"inputText": "hello", "inputImage": PICTURE},
    ),
    *_nova(
        "any",
        "GENERIC_INDEX",
        _NOVA_ALL,
        {"text": {"truncationMode": "END", "value": "hello"}},
        '{"text":"hello"}',
    ),
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
]  # fmt: skip
