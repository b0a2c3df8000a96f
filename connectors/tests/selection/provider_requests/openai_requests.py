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


_WRITTEN = {
    "model": values.STRINGS, "temperature": values.NUMBERS, "top_p": values.NUMBERS, "max_tokens": values.COUNTS,
    "max_completion_tokens": values.COUNTS, "stop": values.STOPS, "tools": values.TOOLS,
    "response_format": values.RESPONSE_FORMATS,
}  # fmt: skip
_TOOL = members("type function", type={"const": "function"}, function={"type": "object", "required": ["name"]})


def openai_chat(
    source: str, takes: str = "model temperature top_p max_tokens stop", streams: Mapping[str, Any] = STREAM_AND_USAGE
) -> ProviderRequest:
    """The row of a provider that takes OpenAI's chat completions; `takes` are the parameters that callers may give."""
    schema = members(
        "messages", model=TEXT, messages=MESSAGES, temperature=NUMBER, top_p=NUMBER, max_tokens=COUNT,
        max_completion_tokens=COUNT, stop=array(TEXT), tools=array(_TOOL), stream=TRUE, stream_options=USAGE,
        response_format={"type": "object", "required": ["type"]},
    )  # fmt: skip
    places = {name: Place((name,), _WRITTEN[name]) for name in takes.split()}
    return ProviderRequest(source, schema, ASKS, places, streams)


def openai_vectors(source: str) -> ProviderRequest:
    """The row of a provider that takes OpenAI's embeddings."""
    return vectors(source, members("model input", model=TEXT, input=array(TEXT)), ("input",), "model")


_OWN_SERVER = "model temperature top_p max_tokens stop tools response_format"
ROWS = {
    "openai-chat": openai_chat(
        f"{_OPENAI}chat/create", "model temperature top_p max_tokens max_completion_tokens stop"
    ),
    "azure-openai-chat": openai_chat(_AZURE, "temperature top_p max_tokens max_completion_tokens stop"),
    "openrouter-chat": openai_chat("https://openrouter.ai/docs/api-reference/chat-completion"),
    "deepseek-chat": openai_chat("https://api-docs.deepseek.com/api/create-chat-completion"),
    "vllm-chat": openai_chat(_VLLM, _OWN_SERVER),
    "sglang-chat": openai_chat("https://docs.sglang.ai/basic_usage/openai_api_completions.html", _OWN_SERVER),
    "llama-cpp-chat": openai_chat(
        "https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md", _OWN_SERVER
    ),
    "ollama-openai-chat": openai_chat("https://docs.ollama.com/openai", _OWN_SERVER),
    "bedrock-openai-chat": openai_chat(
        "https://docs.aws.amazon.com/bedrock/latest/userguide/inference-chat-completions.html"
    ),
    "xai-chat": openai_chat("https://docs.x.ai/docs/api-reference", "model"),
    "groq-chat": openai_chat("https://console.groq.com/docs/api-reference", "model"),
    "together-chat": openai_chat("https://docs.together.ai/reference/chat-completions-1", "model"),
    "fireworks-chat": openai_chat("https://docs.fireworks.ai/api-reference/post-chatcompletions", "model"),
    "huggingface-chat": openai_chat("https://huggingface.co/docs/inference-providers/tasks/chat-completion", "model"),
    "dashscope-chat": openai_chat("https://help.aliyun.com/zh/model-studio/qwen-api-reference", "model"),
    "workers-ai-chat": openai_chat(
        "https://developers.cloudflare.com/workers-ai/configuration/open-ai-compatibility/", "model"
    ),
    "perplexity-chat": openai_chat("https://docs.perplexity.ai/api-reference", "model", STREAM),
    "databricks-chat": openai_chat(
        "https://docs.databricks.com/aws/en/machine-learning/foundation-model-apis/api-reference", "", STREAM
    ),
    # Mistral refuses members that it does not know, `stream_options` among them.
    "mistral-chat": openai_chat("https://docs.mistral.ai/api/#tag/chat", "model temperature top_p max_tokens", STREAM),
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
