"""Providers that are called with a key: OpenAI and its like, Cohere, Google, Aleph Alpha, Yandex."""

import json
from collections.abc import Mapping
from typing import Any

from integration_tests.provider_dialects.dialect import QUESTION, SECRET, Way, bearer, mapped, vector
from integration_tests.provider_dialects.hosted import CANDIDATES, COHERE_MESSAGE, gemini_stream
from integration_tests.provider_dialects.openai import MESSAGES, STREAM, STREAM_WITH_USAGE, completion, embedded
from integration_tests.public_blueprints.aws_text import JUDGE, RETRIES, judges
from integration_tests.public_blueprints.body import PublicBlueprint, calls, commented, connector, row, tensors

TEXTS = ["hello", "wörld!"]
VECTORS = [vector(text) for text in TEXTS]
CHAT = '{ "model": "${parameters.model}", "messages": ${parameters.messages} }'
CHAT_URL = "https://${parameters.endpoint}/v1/chat/completions"
AZURE_URL = "https://${parameters.endpoint}/openai/deployments/${parameters.deploy-name}"
JUDGES = [{"role": "system", "content": "You judge."}, {"role": "user", "content": QUESTION}]
JUDGE_PROMPT = json.dumps(JUDGES).replace('"You judge."', '"${parameters.system_prompt}"')
JUDGE_MESSAGES = JUDGE_PROMPT.replace(json.dumps(QUESTION), '"${parameters.user_prompt}"')


def _bearer(key: str, **more: str) -> dict[str, str]:
    return {"Authorization": f"Bearer ${{credential.{key}}}", **more}


def http(
    name: str,
    url: str,
    template: str,
    key: str,
    path: str,
    sent: Mapping[str, Any],
    answer: Any,
    **more: Any,
) -> list[PublicBlueprint]:
    """`asked`: parameters; `takes`: the prediction's whole body; `arrives`: headers; the rest as in `connector`."""
    way: Way | None = more.pop("way", None)
    streamed = None if way is None else way.of(path, sent)
    takes = more.pop("takes", None) or {"parameters": more.pop("asked")}
    arrives = more.pop("arrives", bearer())
    dialect = calls(path, sent, answer, takes, more.pop("predicted", None), streamed, headers=arrives)
    rows: dict[str, Any] = {name: more.pop(name) for name in ("needs_painless",) if name in more}
    headers = more.pop("headers", _bearer(key))
    parameters = more.pop("parameters", {})
    return row(name, connector(name, url, template, parameters, {key: SECRET}, headers=headers, **more), dialect, **rows)


def _speaks_chat(name: str, key: str, model: str, recorded: str, **more: Any) -> list[PublicBlueprint]:
    return http(
        name,
        more.pop("url", CHAT_URL),
        CHAT,
        key,
        "/v1/chat/completions",
        {"model": model, "messages": MESSAGES},
        completion(model),
        asked={"messages": MESSAGES},
        parameters={"endpoint": "$HOST", "model": model},
        way=Way(recorded, body=STREAM_WITH_USAGE),
        supports_structured_output=True,
    )


def _judge(name: str, key: str, url: str, template: str, path: str, sent: Mapping[str, Any], **more: Any) -> list[PublicBlueprint]:
    """A page for judging search results: a prompt of two parts, the text taken out by a script."""
    more = {"way": Way("openai chat", body=STREAM_WITH_USAGE), "answer": completion("m"), **more}
    text = more.pop("text", "choices.0.message.content")
    rows = http(
        name, url, template, key, path, sent, more.pop("answer"), asked=JUDGE, predicted=mapped({"response": "42"}),
        post=judges(text), client_config=RETRIES, needs_painless=True, **more,
    )  # fmt: skip
    return rows if name.startswith("azure") else commented(rows)


def _judge_of_messages(name: str, key: str, url: str = CHAT_URL) -> list[PublicBlueprint]:
    parameters = {"endpoint": "$HOST", "model": "m", "messages": JUDGE_MESSAGES}
    sent = {"model": "m", "messages": JUDGES}
    return _judge(name, key, url, CHAT, "/v1/chat/completions", sent, parameters=parameters)


_AZURE = {"endpoint": "$HOST", "deploy-name": "my-deployment"}
_AZURE_KEY = {"headers": {"api-key": "${credential.openAI_key}"}, "arrives": {"api-key": SECRET}}
_AZURE_PATH = "/openai/deployments/my-deployment"
_OPENAI = {"pre": "connector.pre_process.openai.embedding", "post": "connector.post_process.openai.embedding"}
_COHERE_HEADERS = _bearer("cohere_key", **{"Request-Source": "unspecified:opensearch"})
_COHERE_ARRIVES = {**bearer(), "Request-Source": "unspecified:opensearch"}
_INPUT = '{ "input": ${parameters.input}, "model": "${parameters.model}" }'
_EMBED = {"input": TEXTS, "model": "text-embedding-ada-002"}
_BATCHES = {
    "action_type": "batch_predict",
    "method": "POST",
    "url": "https://api.openai.com/v1/batches",
    "headers": _bearer("openAI_key"),
    "request_body": '{ "input_file_id": "${parameters.input_file_id}", "endpoint": "${parameters.endpoint}", '
    '"completion_window": "24h" }',
}


def _openai_embedding(name: str, standard: bool, **more: Any) -> list[PublicBlueprint]:
    takes = {"asked": {"input": TEXTS}} if standard else {"takes": {"text_docs": TEXTS}, "predicted": tensors(*VECTORS)}
    functions = {} if standard else _OPENAI
    return http(
        name, "https://api.openai.com/v1/embeddings", _INPUT, "openAI_key", "/v1/embeddings", _EMBED, embedded(TEXTS),
        parameters={"model": "text-embedding-ada-002"}, **takes, **functions, **more,
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


def _cohere_embedding(name: str, key: str, value: Any, **more: Any) -> list[PublicBlueprint]:
    """`key`: texts or images."""
    template = (
        f'{{ "{key}": ${{parameters.{key}}}, "truncate": "${{parameters.truncate}}", '
        '"model": "${parameters.model}", "input_type": "${parameters.input_type}" }'
    )
    own = {"model": "embed-english-v3.0", "truncate": "END", "input_type": "search_document"}
    answer = {"embeddings": [vector(text) for text in value]}
    rows = http(
        name, "https://api.cohere.ai/v1/embed", template, "cohere_key", "/v1/embed", {**own, key: value}, answer,
        headers=_COHERE_HEADERS, arrives=_COHERE_ARRIVES, parameters=own, **more,
    )  # fmt: skip
    return commented(rows)


def _cohere_functions(kind: str) -> dict[str, str]:
    return {"pre": f"connector.pre_process.cohere.{kind}", "post": "connector.post_process.cohere.embedding"}


_PICTURES = ["data:image/png;base64,iVBORw0KGgo="]
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
        headers=_bearer("vertexAI_token"),
    )  # fmt: skip
    path = "/v1/projects/my-project/locations/us-central1/publishers/google/models/textembedding-gecko@003:predict"
    answer = {"predictions": [{"embeddings": {"values": [0.5]}}]}
    sent = {"instances": [{"content": QUESTION}]}
    model = {"name": "vertex", "function_name": "remote", "description": "d", "connector": inline}
    dialect = calls(path, sent, answer, {"parameters": {"prompt": QUESTION}}, headers=bearer())
    return [PublicBlueprint("vertex embedding", json.dumps(model, indent=2), dialect, inline=True)]


_GEMINI_URL = "https://generativelanguage.googleapis.com/v1beta/models/${parameters.model}:generateContent"
_GEMINI_PATH = "/v1beta/models/gemini-2.5-flash:generateContent"
_GEMINI_KEY = {"headers": {"x-goog-api-key": "${credential.gemini_key}"}, "arrives": {"x-goog-api-key": SECRET}}
_GEMINI: dict[str, Any] = {"parameters": {"model": "gemini-2.5-flash"}, "way": Way("gemini", path=gemini_stream)}
_CONTENTS = [{"role": "user", "parts": [{"text": QUESTION}]}]
_YANDEX = {"api_key": "Api-Key ${credential.api_key}"}

BLUEPRINTS: list[PublicBlueprint] = [
    *http(
        "aleph alpha",
        "https://${parameters.endpoint}/semantic_embed",
        '{ "model": "luminous-base", "prompt": "${parameters.input}", "representation": "${parameters.representation}", '
        '"normalize": ${parameters.normalize}}',
        "AlephAlpha_API_Token",
        "/semantic_embed",
        {"model": "luminous-base", "prompt": "hello", "representation": "document", "normalize": True},
        {"embedding": vector("hello")},
        parameters={"endpoint": "$HOST", "representation": "document", "normalize": True},
        takes={"text_docs": ["hello"]},
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
        f"{_AZURE_PATH}/chat/completions?api-version=2023-03-15-preview",
        {"messages": MESSAGES, "temperature": 0.7},
        completion("gpt-4"),
        asked={"messages": MESSAGES},
        parameters={**_AZURE, "api-version": "2023-03-15-preview", "temperature": 0.7},
        way=Way("azure", body=STREAM),
        supports_structured_output=True,
        **_AZURE_KEY,
    ),
    *http(
        "azure embedding",
        f"{AZURE_URL}/embeddings?api-version=${{parameters.api-version}}",
        '{ "input": ${parameters.input}}',
        "openAI_key",
        f"{_AZURE_PATH}/embeddings?api-version=2023-05-15",
        {"input": TEXTS},
        embedded(TEXTS),
        takes={"text_docs": TEXTS},
        predicted=tensors(*VECTORS),
        parameters={**_AZURE, "api-version": "2023-05-15"},
        **_AZURE_KEY,
        **_OPENAI,
    ),
    *commented(
        http(
            "azure embedding, standard",
            f"{AZURE_URL}/embeddings?api-version=${{parameters.api-version}}",
            '{ "input": ${parameters.input}, "input_type": "array"}',
            "openAI_key",
            f"{_AZURE_PATH}/embeddings?api-version=2023-05-15",
            {"input": TEXTS, "input_type": "array"},
            embedded(TEXTS),
            asked={"input": TEXTS},
            parameters={**_AZURE, "api-version": "2023-05-15"},
            **_AZURE_KEY,
        )
    ),
    *_openai_embedding("openai batch", standard=False, further_actions=[_BATCHES]),
    *_openai_embedding("openai embedding", standard=False),
    *_with_a_secret_of_aws(_openai_embedding("openai embedding", standard=False)),
    *_openai_embedding("openai embedding, standard", standard=True),
    *_with_a_secret_of_aws(_openai_embedding("openai embedding, standard", standard=True)),
    *http(
        "cohere chat",
        "https://api.cohere.ai/v1/chat",
        '{ "message": "${parameters.message}", "model": "${parameters.model}" }',
        "cohere_key",
        "/v1/chat",
        {"message": QUESTION, "model": "command"},
        {"text": "42", "finish_reason": "COMPLETE"},
        asked={"message": QUESTION},
        parameters={"model": "command"},
        way=Way("cohere v1", "ndjson", STREAM),
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
        asked={"messages": MESSAGES},
        parameters={"model": "command-r-plus"},
        way=Way("cohere v2", body=STREAM),
        headers=_COHERE_HEADERS,
        arrives=_COHERE_ARRIVES,
        supports_structured_output=True,
    ),
    *_cohere_embedding(
        "cohere embedding", "texts", TEXTS, takes={"text_docs": TEXTS}, predicted=tensors(*VECTORS),
        **_cohere_functions("embedding"),
    ),
    *_cohere_embedding(
        "cohere image", "images", _PICTURES, takes={"text_docs": _PICTURES}, predicted=tensors(vector(_PICTURES[0])),
        **_cohere_functions("multimodal_embedding"),
    ),
    *_cohere_embedding("cohere image, standard", "images", _PICTURES, asked={"images": _PICTURES}),
    *_cohere_embedding("cohere embedding, standard", "texts", TEXTS, asked={"texts": TEXTS}),
    *_speaks_chat("deepseek", "deepSeek_key", "deepseek-chat", "deepseek"),
    *_speaks_chat("ollama", "openAI_key", "llama3.2", "openai chat", url=CHAT_URL.replace("https", "http")),
    *_speaks_chat("openai chat", "openAI_key", "gpt-4o", "openai chat"),
    *http(
        "openai completion",
        "https://${parameters.endpoint}/v1/completions",
        '{ "model": "${parameters.model}", "prompt": "${parameters.prompt}", "max_tokens": ${parameters.max_tokens}, '
        '"temperature": ${parameters.temperature} }',
        "openAI_key",
        "/v1/completions",
        {"model": "gpt-3.5-turbo-instruct", "prompt": QUESTION, "max_tokens": 7, "temperature": 0},
        {"choices": [{"text": "42", "index": 0, "finish_reason": "stop"}]},
        asked={"prompt": QUESTION},
        parameters={"endpoint": "$HOST", "model": "gpt-3.5-turbo-instruct", "max_tokens": 7, "temperature": 0},
        way=Way("openai completions", body=STREAM_WITH_USAGE),
    ),
    *_vertex(),
    *http(
        "gemini",
        _GEMINI_URL,
        '{ "contents": ${parameters.contents} }',
        "gemini_key",
        _GEMINI_PATH,
        {"contents": _CONTENTS},
        CANDIDATES,
        asked={"contents": _CONTENTS},
        supports_structured_output=True,
        **_GEMINI_KEY,
        **_GEMINI,
    ),
    *_judge(
        "azure as a judge",
        "openAI_key",
        f"{AZURE_URL}/chat/completions?api-version=${{parameters.api-version}}",
        json.dumps({"messages": "$"}).replace('"$"', JUDGE_MESSAGES),
        f"{_AZURE_PATH}/chat/completions?api-version=2024-10-21",
        {"messages": JUDGES},
        parameters={**_AZURE, "api-version": "2024-10-21"},
        **_AZURE_KEY,
    ),
    *_judge_of_messages("deepseek as a judge", "deepSeek_key"),
    *_judge_of_messages("ollama as a judge", "openAI_key", CHAT_URL.replace("https", "http")),
    *_judge(
        "gemini as a judge",
        "gemini_key",
        _GEMINI_URL,
        '{"systemInstruction":{"parts":[{"text":"${parameters.system_prompt}"}]},'
        '"contents":[{"role":"user","parts":[{"text":"${parameters.user_prompt}"}]}]}',
        _GEMINI_PATH,
        {"systemInstruction": {"parts": [{"text": "You judge."}]}, "contents": _CONTENTS},
        text="candidates.0.content.parts.0.text",
        answer=CANDIDATES,
        **_GEMINI_KEY,
        **_GEMINI,
    ),
    *_judge(
        "openai as a judge",
        "openAI_key",
        CHAT_URL,
        json.dumps({"model": "${parameters.model}", "messages": "$"}).replace('"$"', JUDGE_MESSAGES),
        "/v1/chat/completions",
        {"model": "gpt-4o", "messages": JUDGES},
        parameters={"endpoint": "$HOST", "model": "gpt-4o"},
    ),
    *http(
        "yandex",
        "https://llm.api.cloud.yandex.net/v1/embeddings",
        _INPUT,
        "api_key",
        "/v1/embeddings",
        {"input": TEXTS, "model": "emb://f/text-search-doc/latest"},
        embedded(TEXTS),
        asked={"input": TEXTS},
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
        takes={"text_docs": ["hello"]},
        predicted=tensors(vector("hello")),
        parameters={"folder_id": "f1", "modelUri": "emb://f/text-search-doc/latest"},
        headers={"Authorization": _YANDEX["api_key"], "x-folder-id": "${parameters.folder_id}"},
        arrives={"Authorization": f"Api-Key {SECRET}", "x-folder-id": "f1"},
        pre="connector.pre_process.bedrock.embedding",
        post="connector.post_process.bedrock.embedding",
    ),
]  # fmt: skip
