"""OpenAI's chat, completions, responses and embeddings, and the many providers that take the same."""

from collections.abc import Mapping
from typing import Any

from tests.selection import caller_values as values
from tests.selection.provider_requests.rows import (
    ASKS,
    COUNT,
    MAX_TOKENS,
    MESSAGES,
    MODEL,
    NUMBER,
    STREAM,
    STREAM_AND_USAGE,
    TEXT,
    TRUE,
    USAGE,
    Place,
    ProviderRequest,
    array,
    members,
    prompt,
    vectors,
)

_OPENAI = "https://platform.openai.com/docs/api-reference/"
_AZURE = "https://learn.microsoft.com/azure/ai-services/openai/reference"
_VLLM = "https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html"


def openai_chat(
    source: str, streams: Mapping[str, Any] = STREAM_AND_USAGE, takes: Mapping[str, Place] = MODEL
) -> ProviderRequest:
    """The row of a provider that takes OpenAI's chat completions."""
    schema = members(
        "messages", model=TEXT, messages=MESSAGES, temperature=NUMBER, max_tokens=COUNT, stream=TRUE,
        stream_options=USAGE,
    )  # fmt: skip
    return ProviderRequest(source, schema, ASKS, takes, streams)


def openai_vectors(source: str) -> ProviderRequest:
    """The row of a provider that takes OpenAI's embeddings."""
    return vectors(source, members("model input", model=TEXT, input=array(TEXT)), ("input",), "model")


ROWS = {
    "openai-chat": openai_chat(
        f"{_OPENAI}chat/create", takes={**MODEL, "temperature": Place(("temperature",), values.NUMBERS)}
    ),
    "azure-openai-chat": openai_chat(_AZURE, takes={}),
    "openrouter-chat": openai_chat("https://openrouter.ai/docs/api-reference/chat-completion"),
    "deepseek-chat": openai_chat("https://api-docs.deepseek.com/api/create-chat-completion"),
    "vllm-chat": openai_chat(_VLLM),
    "sglang-chat": openai_chat("https://docs.sglang.ai/basic_usage/openai_api_completions.html"),
    "llama-cpp-chat": openai_chat("https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md"),
    "ollama-openai-chat": openai_chat("https://docs.ollama.com/openai"),
    "bedrock-openai-chat": openai_chat(
        "https://docs.aws.amazon.com/bedrock/latest/userguide/inference-chat-completions.html"
    ),
    # Mistral refuses members that it does not know, `stream_options` among them.
    "mistral-chat": openai_chat("https://docs.mistral.ai/api/#tag/chat", STREAM),
    "openai-completions": prompt(
        f"{_OPENAI}completions/create",
        members(
            "model prompt max_tokens", model=TEXT, prompt=TEXT, max_tokens=COUNT, stream=TRUE, stream_options=USAGE
        ),
        takes={**MODEL, **MAX_TOKENS},
        streams=STREAM_AND_USAGE,
    ),
    "openai-responses": ProviderRequest(
        f"{_OPENAI}responses/create",
        members("model input", model=TEXT, input=MESSAGES, stream=TRUE),
        {"inputs": Place(("input", 0, "content")), "messages": Place(("input",), values.MESSAGES)},
        MODEL,
        STREAM,
    ),
    "openai-embedding": openai_vectors(f"{_OPENAI}embeddings/create"),
    "mistral-embedding": openai_vectors("https://docs.mistral.ai/api/#tag/embeddings"),
    "gemini-embedding": openai_vectors("https://ai.google.dev/gemini-api/docs/openai"),
    "vllm-embedding": openai_vectors(_VLLM),
    "ollama-embedding": openai_vectors("https://docs.ollama.com/api/embed"),
    "azure-openai-embedding": vectors(_AZURE, members("input", input=array(TEXT)), ("input",)),
}
