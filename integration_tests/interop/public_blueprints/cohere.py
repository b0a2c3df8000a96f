"""Cohere's own interface."""

from typing import Any

from integration_tests.interop.provider_dialects.dialect import Way, bearer, vector
from integration_tests.interop.public_blueprints.body import PublicBlueprint, commented, tensors
from integration_tests.interop.public_blueprints.keyed_providers import TEXTS, VECTORS, bearer_of, http
from integration_tests.interop.public_blueprints.provider_bodies import COHERE_MESSAGE, MESSAGES, STREAM

from tests.providers.recorded_streams import QUESTION

_COHERE_HEADERS = bearer_of("cohere_key", **{"Request-Source": "unspecified:opensearch"})
_COHERE_ARRIVES = {**bearer(), "Request-Source": "unspecified:opensearch"}


def _cohere_embedding(name: str, key: str, value: Any, **more: Any) -> list[PublicBlueprint]:
    """`key`: texts or images."""
    template = (
        f'{{ "{key}": ${{parameters.{key}}}, "truncate": "${{parameters.truncate}}", '
        '"model": "${parameters.model}", "input_type": "${parameters.input_type}" }'
    )
    own = {"model": "embed-english-v3.0", "truncate": "END", "input_type": "search_document"}
    response = {"embeddings": [vector(text) for text in value]}
    rows = http(
        name, "https://api.cohere.ai/v1/embed", template, "cohere_key", "/v1/embed", {**own, key: value}, response,
        headers=_COHERE_HEADERS, arrives=_COHERE_ARRIVES, parameters=own, **more,
    )  # fmt: skip
    return commented(rows)


def _cohere_functions(kind: str) -> dict[str, str]:
    return {"pre": f"connector.pre_process.cohere.{kind}", "post": "connector.post_process.cohere.embedding"}


_PICTURES = ["data:image/png;base64,iVBORw0KGgo="]

BLUEPRINTS: list[PublicBlueprint] = [
    *http(
        "cohere chat",
        "https://api.cohere.ai/v1/chat",
        '{ "message": "${parameters.message}", "model": "${parameters.model}" }',
        "cohere_key",
        "/v1/chat",
        {"message": QUESTION, "model": "command"},
        {"text": "42", "finish_reason": "COMPLETE"},
        prediction_parameters={"message": QUESTION},
        parameters={"model": "command"},
        way=Way("cohere-chat-v1", "ndjson", STREAM),
        headers=_COHERE_HEADERS,
        arrives=_COHERE_ARRIVES,
    ),
    *http(
        "cohere chat v2",
        "https://api.cohere.com/v2/chat",
        '{ "model": "${parameters.model}", "stream": false, "messages": ${parameters.messages} }',
        "cohere_key",
        "/v2/chat",
        {"model": "command-r-plus", "stream": False, "messages": MESSAGES},
        COHERE_MESSAGE,
        prediction_parameters={"messages": MESSAGES},
        parameters={"model": "command-r-plus"},
        way=Way("cohere-chat", body=STREAM),
        headers=_COHERE_HEADERS,
        arrives=_COHERE_ARRIVES,
        supports_structured_output=True,
    ),
    *_cohere_embedding(
        "cohere embedding",
        "texts",
        TEXTS,
        prediction={"text_docs": TEXTS},
        predicted=tensors(*VECTORS),
        **_cohere_functions("embedding"),
    ),
    *_cohere_embedding(
        "cohere image",
        "images",
        _PICTURES,
        prediction={"text_docs": _PICTURES},
        predicted=tensors(vector(_PICTURES[0])),
        **_cohere_functions("multimodal_embedding"),
    ),
    *_cohere_embedding("cohere image, standard", "images", _PICTURES, prediction_parameters={"images": _PICTURES}),
    *_cohere_embedding("cohere embedding, standard", "texts", TEXTS, prediction_parameters={"texts": TEXTS}),
]
