"""OpenAI and the providers that speak its interfaces."""

from collections.abc import Mapping
from typing import Any

from integration_tests.interop.provider_dialects.dialect import (
    QUESTION,
    SECRET,
    Dialect,
    Way,
    bearer,
    chat,
    vector,
    vectors,
)

MESSAGES = [{"role": "user", "content": QUESTION}]
OWN = {"messages": MESSAGES}
STREAM = {"stream": True}
STREAM_WITH_USAGE = {"stream": True, "stream_options": {"include_usage": True}}
TEXTS = ["hello", "wörld!"]


def completion(model: str) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": model,
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "42"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10},
    }


def speaks_chat(
    recorded: str,
    model: str,
    path: str = "/v1/chat/completions",
    stream: Mapping[str, Any] = STREAM_WITH_USAGE,
    **body: Any,
) -> Dialect:
    """One that is called as OpenAI's chat completions are."""
    request = {"model": model, "messages": MESSAGES, **body}
    return chat(path, request, completion(model), Way(recorded, body=stream), OWN, headers=bearer())


def embeddings(model: str, path: str = "/v1/embeddings") -> Dialect:
    return vectors(path, [{"model": model, "input": TEXTS}], [embedded(TEXTS)], TEXTS, headers=bearer())


def embedded(texts: list[str]) -> dict[str, Any]:
    data = [{"object": "embedding", "index": index, "embedding": vector(text)} for index, text in enumerate(texts)]
    return {"object": "list", "data": data, "model": "m", "usage": {"prompt_tokens": 4, "total_tokens": 4}}


_AZURE = "/openai/deployments/my-deployment"
_RESPONSE = {"id": "resp_1", "object": "response", "status": "completed", "output": []}

DIALECTS = {
    "openai-chat": speaks_chat("openai chat", "gpt-4o-mini", temperature=1),
    "openai-completions": chat(
        "/v1/completions",
        {"model": "gpt-3.5-turbo-instruct", "prompt": QUESTION, "max_tokens": 512},
        {"object": "text_completion", "choices": [{"text": "42", "index": 0, "finish_reason": "stop"}]},
        Way("openai completions", body=STREAM_WITH_USAGE),
        {"prompt": QUESTION},
        headers=bearer(),
    ),
    "openai-responses": chat(
        "/v1/responses",
        {"model": "gpt-5-mini", "input": MESSAGES},
        _RESPONSE,
        Way("openai responses", body=STREAM),
        OWN,
        headers=bearer(),
    ),
    "openai-embedding": embeddings("text-embedding-3-small"),
    "azure-openai-chat": chat(
        f"{_AZURE}/chat/completions?api-version=2024-10-21",
        {"messages": MESSAGES},
        completion("gpt-4o"),
        Way("azure", body=STREAM_WITH_USAGE),
        OWN,
        headers={"api-key": SECRET},
    ),
    "azure-openai-embedding": vectors(
        f"{_AZURE}/embeddings?api-version=2024-10-21",
        [{"input": TEXTS}],
        [embedded(TEXTS)],
        TEXTS,
        headers={"api-key": SECRET},
    ),
    "deepseek-chat": speaks_chat("deepseek", "deepseek-chat"),
    "mistral-chat": speaks_chat("mistral", "mistral-small-latest", stream=STREAM),
    "mistral-embedding": embeddings("mistral-embed"),
    "openrouter-chat": speaks_chat("openrouter", "openai/gpt-4o-mini"),
    "vllm-chat": speaks_chat("vllm", "Qwen/Qwen2.5-7B-Instruct"),
    "vllm-embedding": embeddings("BAAI/bge-m3"),
    "sglang-chat": speaks_chat("openai tool calls", "default"),
    "llama-cpp-chat": speaks_chat("openai chat", "default"),
    "ollama-openai-chat": speaks_chat("openai chat", "llama3.2"),
    "bedrock-openai-chat": speaks_chat("openai chat", "openai.gpt-oss-20b-1:0", "/openai/v1/chat/completions"),
    "gemini-embedding": embeddings("gemini-embedding-001", "/v1beta/openai/embeddings"),
}
