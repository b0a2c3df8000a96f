"""How providers that offer OpenAI's chat completions differ from it, each as its documentation says."""

from typing import Any

from opensearch_ml_stream.connectors.conversation.dialects.chat_completions import (
    Variant,
    chat_dialect,
    effort_of_budget,
)

_JSON = dict[str, Any]

_TO_MAX_TOKENS = {"max_completion_tokens": "max_tokens"}
_SAMPLING = frozenset({"top_k", "min_p"})  # which OpenAI does not have
_OF_OPENAI_ALONE = frozenset({"user", "metadata", "service_tier", "modalities", "audio", "verbosity", "logit_bias"})
_IMAGES = frozenset({"image"})
_NO_MEDIA: frozenset[str] = frozenset()


def _thinking(tokens: int) -> _JSON:
    """Return DeepSeek's switch for thinking and its effort."""
    if not tokens:
        return {"thinking": {"type": "disabled"}}
    return {"thinking": {"type": "enabled"}, "reasoning_effort": effort_of_budget(tokens)}


def _claude_thinking(tokens: int) -> _JSON:
    return {"thinking": {"type": "enabled", "budget_tokens": tokens} if tokens else {"type": "disabled"}}


def _qwen_thinking(tokens: int) -> _JSON:
    return {"enable_thinking": True, "thinking_budget": tokens} if tokens else {"enable_thinking": False}


def _reasoning(tokens: int) -> _JSON:
    return {"reasoning": {"max_tokens": tokens} if tokens else {"enabled": False}}


def _disable_thinking(body: _JSON) -> None:
    """Write the effort "none", which DeepSeek has no such word for, as its switch."""
    if body.get("reasoning_effort") == "none":
        del body["reasoning_effort"]
        body.setdefault("thinking", {"type": "disabled"})


def _mistral_part(part: _JSON) -> _JSON:
    """Return a part in Mistral's form: a sound is its data alone, a file a `document_url`."""
    sound, file = part.get("input_audio"), part.get("file")
    if isinstance(sound, dict) and "data" in sound:
        return {"type": "input_audio", "input_audio": sound["data"]}
    if isinstance(file, dict) and "file_data" in file:
        name = {"document_name": file["filename"]} if file.get("filename") else {}
        return {"type": "document_url", "document_url": file["file_data"], **name}
    if isinstance(file, dict) and "file_id" in file:
        return {"type": "file", "file_id": file["file_id"]}
    return part


def _watsonx_choice(body: _JSON) -> None:
    """Write a choice of tools by a word where watsonx has it; only a tool that is named is a `tool_choice`."""
    if isinstance(body.get("tool_choice"), str):
        body["tool_choice_option"] = body.pop("tool_choice")


OPENAI = chat_dialect(
    Variant(
        max_tokens="max_completion_tokens",  # which its reasoning models demand
        refused=_SAMPLING,
        takes_developer=True,
        has_text_parts=True,
    )
)

AZURE_OLD = chat_dialect(Variant(refused=_SAMPLING))
"""Azure OpenAI before it took `max_completion_tokens` and the role `developer`."""

# https://docs.mistral.ai/api/#tag/chat: members that it does not know are a 422.
MISTRAL = chat_dialect(
    Variant(
        renamed=_TO_MAX_TOKENS | {"seed": "random_seed"},
        refused=_SAMPLING | (_OF_OPENAI_ALONE - {"metadata"}) | {"logprobs", "top_logprobs"},
        takes_developer=False,
        takes_names=False,
        takes_file_urls=True,
        part=_mistral_part,
    )
)

# https://console.groq.com/docs/openai: these are a 400 there, and `n` must be 1.
GROQ = chat_dialect(
    Variant(
        refused=_SAMPLING | {"logprobs", "top_logprobs", "logit_bias", "n"},
        takes_names=False,
        media=_IMAGES,
    )
)

# https://api-docs.deepseek.com/guides/thinking_mode: reasoning of answers that call tools has to be sent back.
DEEPSEEK = chat_dialect(
    Variant(
        renamed=_TO_MAX_TOKENS,
        refused=_SAMPLING | (_OF_OPENAI_ALONE - {"user"}) | {"n", "seed", "parallel_tool_calls"},
        takes_developer=False,
        media=_NO_MEDIA,
        reasoning="reasoning_content",
        budget=_thinking,
        answer_kinds=frozenset({"json"}),
        edit=_disable_thinking,
    )
)

# https://docs.x.ai/docs/api-reference#chat-completions.
XAI = chat_dialect(Variant(max_tokens="max_completion_tokens", refused=_SAMPLING))

# https://docs.perplexity.ai/api-reference/chat-completions-post.
PERPLEXITY = chat_dialect(
    Variant(
        renamed=_TO_MAX_TOKENS,
        refused=frozenset({"min_p", "seed", "logit_bias", "modalities", "audio"}),
        takes_developer=False,
        media=_IMAGES,
        answer_kinds=frozenset({"schema"}),
    )
)

# https://openrouter.ai/docs/api-reference/overview and /docs/use-cases/reasoning-tokens.
OPENROUTER = chat_dialect(
    Variant(
        takes_file_urls=True,
        has_text_parts=True,
        takes_cache=True,
        reasoning="reasoning",
        budget=_reasoning,
    )
)

# https://docs.databricks.com/aws/en/machine-learning/foundation-model-apis/api-reference#chat-request.
DATABRICKS = chat_dialect(
    Variant(
        renamed=_TO_MAX_TOKENS,
        takes_developer=False,
        media=_IMAGES,
        budget=_claude_thinking,
    )
)

# https://docs.ollama.com/api/openai-compatibility: members that it does not know have no effect.
OLLAMA = chat_dialect(
    Variant(
        renamed=_TO_MAX_TOKENS,
        refused=_SAMPLING | (_OF_OPENAI_ALONE - {"user"}) | {"n", "tool_choice", "parallel_tool_calls"},
        takes_developer=False,
        media=_IMAGES,
    )
)

# https://www.alibabacloud.com/help/en/model-studio/deep-thinking.
DASHSCOPE = chat_dialect(
    Variant(
        refused=frozenset({"min_p"}),
        takes_developer=False,
        reasoning="reasoning_content",
        budget=_qwen_thinking,
    )
)

# https://cloud.ibm.com/apidocs/watsonx-ai#text-chat.
WATSONX = chat_dialect(
    Variant(
        max_tokens="max_completion_tokens",
        refused=_SAMPLING | (_OF_OPENAI_ALONE - {"logit_bias"}) | {"parallel_tool_calls"},
        takes_developer=False,
        media=frozenset({"image", "audio"}),
        edit=_watsonx_choice,
    )
)

TAKES_REASONING_CONTENT = chat_dialect(Variant(reasoning="reasoning_content"))
"""Fireworks, SGLang and llama.cpp take reasoning back by the name that it comes by."""

TAKES_REASONING = chat_dialect(Variant(reasoning="reasoning"))
"""So does vLLM, by another name: https://docs.vllm.ai/en/latest/features/interleaved_thinking/."""
