"""Platforms that host models of others: OpenAI's chat completions under their own paths, or another interface."""

from integration_tests.interop.provider_dialects.dialect import QUESTION, SECRET, Way, bearer, chat
from integration_tests.interop.provider_dialects.openai import MESSAGES, OWN, STREAM, completion, speaks_chat

_CONTENT = [{"type": "text", "text": QUESTION}]
_ENDPOINT = "databricks-meta-llama-3-3-70b-instruct"
_GRANITE = {"model_id": "ibm/granite-3-3-8b-instruct", "project_id": "my-project"}
_VERSION = "version=2024-10-10"
_LLAMA = "@cf/meta/llama-3.1-8b-instruct"
_ACCOUNT = "/client/v4/accounts/my-account/ai"
_GENERATION = {"model": "qwen-plus", "input": {"messages": MESSAGES}}


def _streamed(path: str) -> str:
    """Where watsonx streams."""
    return path.replace("?", "_stream?")


DIALECTS = {
    "groq-chat": speaks_chat("groq", "llama-3.3-70b-versatile"),
    "xai-chat": speaks_chat("xai", "grok-4"),
    "perplexity-chat": speaks_chat("perplexity", "sonar", "/chat/completions", STREAM),
    "fireworks-chat": speaks_chat("fireworks", "accounts/fireworks/models/llama-v3p3-70b-instruct"),
    "together-chat": speaks_chat("together", "meta-llama/Llama-3.3-70B-Instruct-Turbo"),
    "huggingface-chat": speaks_chat("hugging face", "meta-llama/Llama-3.1-8B-Instruct"),
    "dashscope-chat": speaks_chat("openai chat", "qwen-plus", "/compatible-mode/v1/chat/completions"),
    "workers-ai-chat": speaks_chat("workers ai, chat", _LLAMA, f"{_ACCOUNT}/v1/chat/completions"),
    "databricks-chat": chat(
        f"/serving-endpoints/{_ENDPOINT}/invocations",
        {"messages": MESSAGES},
        completion(_ENDPOINT),
        Way("databricks", body=STREAM),
        OWN,
        headers=bearer(),
    ),
    "dashscope-generation": chat(
        "/api/v1/services/aigc/text-generation/generation",
        {**_GENERATION, "parameters": {"result_format": "message"}},
        {"output": {"choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": "42"}}]}},
        Way(
            "dashscope",
            body={"parameters": {"result_format": "message", "incremental_output": True}},
            headers={"X-DashScope-SSE": "enable"},
        ),
        OWN,
        headers=bearer(),
    ),
    "watsonx-chat": chat(
        f"/ml/v1/text/chat?{_VERSION}",
        {**_GRANITE, "messages": MESSAGES},
        completion("ibm/granite-3-3-8b-instruct"),
        Way("watsonx chat", path=_streamed),
        OWN,
        headers=bearer(),
    ),
    "watsonx-generation": chat(
        f"/ml/v1/text/generation?{_VERSION}",
        {**_GRANITE, "input": QUESTION, "parameters": {"max_new_tokens": 512}},
        {"results": [{"generated_text": "42", "stop_reason": "eos_token"}]},
        Way("watsonx generation", path=_streamed),
        {"prompt": QUESTION},
        headers=bearer(),
    ),
    "workers-ai-run": chat(
        f"{_ACCOUNT}/run/{_LLAMA}",
        {"messages": MESSAGES},
        {"result": {"response": "42"}, "success": True, "errors": [], "messages": []},
        Way("workers ai", body=STREAM),
        OWN,
        headers=bearer(),
    ),
    "gemini-interactions": chat(
        "/v1beta/interactions",
        {"model": "gemini-2.5-flash", "input": _CONTENT},
        {"object": "interaction", "status": "completed", "steps": [{"type": "model_output", "content": _CONTENT}]},
        Way("gemini interactions", body=STREAM),
        {"input": _CONTENT},
        headers={"x-goog-api-key": SECRET},
    ),
}
