"""Providers that are called with a key: OpenAI and its like, Google, Aleph Alpha, Yandex."""

import json
from collections.abc import Mapping
from typing import Any

from integration_tests.interop.provider_dialects.dialect import Way, bearer, vector
from integration_tests.interop.public_blueprints.body import PublicBlueprint, calls, commented, connector, row, tensors
from integration_tests.interop.public_blueprints.provider_bodies import (
    CANDIDATES,
    MESSAGES,
    STREAM,
    STREAM_WITH_USAGE,
    completion,
    embedded,
    gemini_stream,
)

from tests.providers.recorded_streams import QUESTION, SECRET

TEXTS = ["hello", "wörld!"]
VECTORS = [vector(text) for text in TEXTS]
CHAT = '{ "model": "${parameters.model}", "messages": ${parameters.messages} }'
CHAT_URL = "https://${parameters.endpoint}/v1/chat/completions"
AZURE_URL = "https://${parameters.endpoint}/openai/deployments/${parameters.deploy-name}"


def bearer_of(key: str, **more: str) -> dict[str, str]:
    return {"Authorization": f"Bearer ${{credential.{key}}}", **more}


def http(
    name: str,
    url: str,
    template: str,
    key: str,
    path: str,
    sent: Mapping[str, Any],
    response: Any,
    **more: Any,
) -> list[PublicBlueprint]:
    """A page of an API with a key.

    `prediction_parameters`, or `prediction` for the whole body, is sent to the sidecar; `arrives` are the headers that
    the provider gets; the rest is as in `connector`.
    """
    way: Way | None = more.pop("way", None)
    streamed = None if way is None else way.of(path, sent)
    prediction = more.pop("prediction", None) or {"parameters": more.pop("prediction_parameters")}
    arrives = more.pop("arrives", bearer())
    dialect = calls(path, sent, response, prediction, more.pop("predicted", None), streamed, headers=arrives)
    rows: dict[str, Any] = {name: more.pop(name) for name in ("needs_painless",) if name in more}
    headers = more.pop("headers", bearer_of(key))
    parameters = more.pop("parameters", {})
    return row(
        name, connector(name, url, template, parameters, {key: SECRET}, headers=headers, **more), dialect, **rows
    )


def _speaks_chat(name: str, key: str, model: str, recorded: str, **more: Any) -> list[PublicBlueprint]:
    return http(
        name,
        more.pop("url", CHAT_URL),
        CHAT,
        key,
        "/v1/chat/completions",
        {"model": model, "messages": MESSAGES},
        completion(model),
        prediction_parameters={"messages": MESSAGES},
        parameters={"endpoint": "$HOST", "model": model},
        way=Way(recorded, body=STREAM_WITH_USAGE),
        supports_structured_output=True,
    )


AZURE = {"endpoint": "$HOST", "deploy-name": "my-deployment"}
AZURE_KEY = {"headers": {"api-key": "${credential.openAI_key}"}, "arrives": {"api-key": SECRET}}
AZURE_PATH = "/openai/deployments/my-deployment"
_OPENAI = {"pre": "connector.pre_process.openai.embedding", "post": "connector.post_process.openai.embedding"}
_INPUT = '{ "input": ${parameters.input}, "model": "${parameters.model}" }'
_EMBED = {"input": TEXTS, "model": "text-embedding-ada-002"}
_BATCHES = {
    "action_type": "batch_predict",
    "method": "POST",
    "url": "https://api.openai.com/v1/batches",
    "headers": bearer_of("openAI_key"),
    "request_body": '{ "input_file_id": "${parameters.input_file_id}", "endpoint": "${parameters.endpoint}", '
    '"completion_window": "24h" }',
}


def _openai_embedding(name: str, standard: bool, **more: Any) -> list[PublicBlueprint]:
    call: dict[str, Any] = {"prediction_parameters": {"input": TEXTS}}
    if not standard:
        call = {"prediction": {"text_docs": TEXTS}, "predicted": tensors(*VECTORS), **_OPENAI}
    return http(
        name, "https://api.openai.com/v1/embeddings", _INPUT, "openAI_key", "/v1/embeddings", _EMBED, embedded(TEXTS),
        parameters={"model": "text-embedding-ada-002"}, **call, **more,
    )  # fmt: skip


def _with_a_secret_of_aws(rows: list[PublicBlueprint]) -> list[PublicBlueprint]:
    """The same for the managed service, which gets the key from AWS; here it is missing."""
    own = '"openAI_key": "' + SECRET + '"'
    managed = '"secretArn": "arn:aws:secretsmanager:us-east-1:1:secret:s", "roleArn": "arn:aws:iam::1:role/r"'
    says = "Header 'Authorization' needs the credential [openAI_key], which the connector lacks"
    return [
        PublicBlueprint(f"{one.name} with a role", one.text.replace(own, managed), one.dialect, refused=says)
        for one in rows
    ]


_ALEPH_PRE = """
    StringBuilder builder = new StringBuilder();
    builder.append("\\"");
    builder.append(params.text_docs[0]);
    builder.append("\\"");
    return "{" + "\\"parameters\\":" + "{" + "\\"input\\":" + builder + "}" + "}";"""
_ALEPH_POST = """
    if (params.embedding == null || params.embedding.length == 0) { return params.message; }
    return "{\\"name\\":\\"sentence_embedding\\",\\"data_type\\":\\"FLOAT32\\",\\"shape\\":[" + params.embedding.length
        + "],\\"data\\":" + params.embedding + "}";"""


def _vertex() -> list[PublicBlueprint]:
    """A model with its connector inline."""
    url = (
        "https://us-central1-aiplatform.googleapis.com/v1/projects/${parameters.project}/locations/us-central1/"
        "publishers/google/models/${parameters.model_id}:predict"
    )
    inline = connector(
        "vertex", url, '{"instances": [{ "content": "${parameters.prompt}"}]}',
        {"project": "my-project", "model_id": "textembedding-gecko@003"}, {"vertexAI_token": SECRET},
        headers=bearer_of("vertexAI_token"),
    )  # fmt: skip
    path = "/v1/projects/my-project/locations/us-central1/publishers/google/models/textembedding-gecko@003:predict"
    response = {"predictions": [{"embeddings": {"values": [0.5]}}]}
    sent = {"instances": [{"content": QUESTION}]}
    model = {"name": "vertex", "function_name": "remote", "description": "d", "connector": inline}
    dialect = calls(path, sent, response, {"parameters": {"prompt": QUESTION}}, headers=bearer())
    return [PublicBlueprint("vertex embedding", json.dumps(model, indent=2), dialect, inline=True)]


GEMINI_URL = "https://generativelanguage.googleapis.com/v1beta/models/${parameters.model}:generateContent"
GEMINI_PATH = "/v1beta/models/gemini-2.5-flash:generateContent"
GEMINI_KEY = {"headers": {"x-goog-api-key": "${credential.gemini_key}"}, "arrives": {"x-goog-api-key": SECRET}}
GEMINI: dict[str, Any] = {"parameters": {"model": "gemini-2.5-flash"}, "way": Way("gemini-chat", path=gemini_stream)}
CONTENTS = [{"role": "user", "parts": [{"text": QUESTION}]}]
_YANDEX = {"api_key": "Api-Key ${credential.api_key}"}

BLUEPRINTS: list[PublicBlueprint] = [
    *http(
        "aleph alpha",
        "https://${parameters.endpoint}/semantic_embed",
        '{ "model": "luminous-base", "prompt": "${parameters.input}", '
        '"representation": "${parameters.representation}", "normalize": ${parameters.normalize}}',
        "AlephAlpha_API_Token",
        "/semantic_embed",
        {"model": "luminous-base", "prompt": "hello", "representation": "document", "normalize": True},
        {"embedding": vector("hello")},
        parameters={"endpoint": "$HOST", "representation": "document", "normalize": True},
        prediction={"text_docs": ["hello"]},
        predicted=tensors(vector("hello")),
        pre=_ALEPH_PRE,
        post=_ALEPH_POST,
        needs_painless=True,
    ),
    *http(
        "azure chat",
        f"{AZURE_URL}/chat/completions?api-version=${{parameters.api-version}}",
        '{ "messages": ${parameters.messages}, "temperature": ${parameters.temperature} }',
        "openAI_key",
        f"{AZURE_PATH}/chat/completions?api-version=2023-03-15-preview",
        {"messages": MESSAGES, "temperature": 0.7},
        completion("gpt-4"),
        prediction_parameters={"messages": MESSAGES},
        parameters={**AZURE, "api-version": "2023-03-15-preview", "temperature": 0.7},
        way=Way("azure-openai-chat", body=STREAM),
        supports_structured_output=True,
        **AZURE_KEY,
    ),
    *http(
        "azure embedding",
        f"{AZURE_URL}/embeddings?api-version=${{parameters.api-version}}",
        '{ "input": ${parameters.input}}',
        "openAI_key",
        f"{AZURE_PATH}/embeddings?api-version=2023-05-15",
        {"input": TEXTS},
        embedded(TEXTS),
        prediction={"text_docs": TEXTS},
        predicted=tensors(*VECTORS),
        parameters={**AZURE, "api-version": "2023-05-15"},
        **AZURE_KEY,
        **_OPENAI,
    ),
    *commented(
        http(
            "azure embedding, standard",
            f"{AZURE_URL}/embeddings?api-version=${{parameters.api-version}}",
            '{ "input": ${parameters.input}, "input_type": "array"}',
            "openAI_key",
            f"{AZURE_PATH}/embeddings?api-version=2023-05-15",
            {"input": TEXTS, "input_type": "array"},
            embedded(TEXTS),
            prediction_parameters={"input": TEXTS},
            parameters={**AZURE, "api-version": "2023-05-15"},
            **AZURE_KEY,
        )
    ),
    *_openai_embedding("openai batch", standard=False, further_actions=[_BATCHES]),
    *_openai_embedding("openai embedding", standard=False),
    *_with_a_secret_of_aws(_openai_embedding("openai embedding", standard=False)),
    *_openai_embedding("openai embedding, standard", standard=True),
    *_with_a_secret_of_aws(_openai_embedding("openai embedding, standard", standard=True)),
    *_speaks_chat("deepseek", "deepSeek_key", "deepseek-chat", "deepseek-chat"),
    *_speaks_chat("ollama", "openAI_key", "llama3.2", "openai-chat", url=CHAT_URL.replace("https", "http")),
    *_speaks_chat("openai chat", "openAI_key", "gpt-4o", "openai-chat"),
    *http(
        "openai completion",
        "https://${parameters.endpoint}/v1/completions",
        '{ "model": "${parameters.model}", "prompt": "${parameters.prompt}", "max_tokens": ${parameters.max_tokens}, '
        '"temperature": ${parameters.temperature} }',
        "openAI_key",
        "/v1/completions",
        {"model": "gpt-3.5-turbo-instruct", "prompt": QUESTION, "max_tokens": 7, "temperature": 0},
        {"choices": [{"text": "42", "index": 0, "finish_reason": "stop"}]},
        prediction_parameters={"prompt": QUESTION},
        parameters={"endpoint": "$HOST", "model": "gpt-3.5-turbo-instruct", "max_tokens": 7, "temperature": 0},
        way=Way("openai-completions", body=STREAM_WITH_USAGE),
    ),
    *_vertex(),
    *http(
        "gemini",
        GEMINI_URL,
        '{ "contents": ${parameters.contents} }',
        "gemini_key",
        GEMINI_PATH,
        {"contents": CONTENTS},
        CANDIDATES,
        prediction_parameters={"contents": CONTENTS},
        supports_structured_output=True,
        **GEMINI_KEY,
        **GEMINI,
    ),
    *http(
        "yandex",
        "https://llm.api.cloud.yandex.net/v1/embeddings",
        _INPUT,
        "api_key",
        "/v1/embeddings",
        {"input": TEXTS, "model": "emb://f/text-search-doc/latest"},
        embedded(TEXTS),
        prediction_parameters={"input": TEXTS},
        parameters={"model": "emb://f/text-search-doc/latest"},
        headers={"Authorization": _YANDEX["api_key"]},
        arrives={"Authorization": f"Api-Key {SECRET}"},
    ),
    *http(
        "yandex, legacy",
        "https://llm.api.cloud.yandex.net/foundationModels/v1/textEmbedding",
        '{ "text": "${parameters.inputText}", "modelUri": "${parameters.modelUri}" }',
        "api_key",
        "/foundationModels/v1/textEmbedding",
        {"text": "hello", "modelUri": "emb://f/text-search-doc/latest"},
        {"embedding": vector("hello"), "numTokens": "1"},
        prediction={"text_docs": ["hello"]},
        predicted=tensors(vector("hello")),
        parameters={"folder_id": "f1", "modelUri": "emb://f/text-search-doc/latest"},
        headers={"Authorization": _YANDEX["api_key"], "x-folder-id": "${parameters.folder_id}"},
        arrives={"Authorization": f"Api-Key {SECRET}", "x-folder-id": "f1"},
        pre="connector.pre_process.bedrock.embedding",
        post="connector.post_process.bedrock.embedding",
    ),
]  # fmt: skip
