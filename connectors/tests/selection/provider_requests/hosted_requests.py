"""Providers with a request of their own: Anthropic, Google, Cohere."""

from tests.selection import caller_values as values
from tests.selection.provider_requests.rows import (
    ASKS,
    COHERE_TEXTS,
    COUNT,
    MAX_TOKENS,
    MESSAGES,
    MODEL,
    PARTS,
    STREAM,
    TEXT,
    TRUE,
    Place,
    ProviderRequest,
    Schema,
    array,
    members,
    prompt,
    turns,
    vectors,
)


def anthropic_messages(required: str, **more: Schema) -> Schema:
    """The body of Anthropic's messages; clouds name the model in the path and the version in the body."""
    conversation = turns({"anyOf": [TEXT, PARTS]}, roles="user assistant")
    return members(f"{required} max_tokens messages", max_tokens=COUNT, messages=conversation, stream=TRUE, **more)


def _gemini(source: str) -> ProviderRequest:
    contents = Place(("contents",), values.GEMINI_CONTENTS)
    asks = {"inputs": Place(("contents", 0, "parts", 0, "text")), "contents": contents}
    return ProviderRequest(source, members("contents", contents=turns(PARTS, "parts", "user model")), asks)


_WATSONX = {"model": Place(("model_id",)), "project_id": Place(("project_id",))}
ROWS = {
    "anthropic-messages": ProviderRequest(
        "https://docs.claude.com/en/api/messages",
        anthropic_messages("model", model=TEXT), ASKS, {**MODEL, **MAX_TOKENS}, STREAM,
    ),
    "vertex-anthropic-messages": ProviderRequest(
        "https://cloud.google.com/vertex-ai/generative-ai/docs/partner-models/claude/use-claude",
        anthropic_messages("anthropic_version", anthropic_version={"const": "vertex-2023-10-16"}),
        ASKS, MAX_TOKENS, STREAM,
    ),
    "gemini-chat": _gemini("https://ai.google.dev/api/generate-content"),
    "vertex-gemini-chat": _gemini("https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/inference"),
    "gemini-interactions": ProviderRequest(
        "https://ai.google.dev/gemini-api/docs/interactions",
        members("model input", model=TEXT, input=PARTS, stream=TRUE),
        {"inputs": Place(("input", 0, "text")), "input": Place(("input",), values.PARTS)}, MODEL, STREAM,
    ),
    # A header turns streaming on; without `incremental_output` each event repeats the text before it.
    "dashscope-generation": ProviderRequest(
        "https://help.aliyun.com/zh/model-studio/qwen-api-reference",
        members("model input parameters", model=TEXT, input=members("messages", messages=MESSAGES),
                parameters=members("result_format", result_format={"const": "message"}, incremental_output=TRUE)),
        {"inputs": Place(("input", "messages", 0, "content")),
         "messages": Place(("input", "messages"), values.MESSAGES)}, MODEL,
        {"parameters": {"result_format": "message", "incremental_output": True}},
    ),
    "workers-ai-run": ProviderRequest(
        "https://developers.cloudflare.com/api/resources/ai/methods/run/",
        members("messages", messages=MESSAGES, stream=TRUE), ASKS, streams=STREAM,
    ),
    "watsonx-chat": ProviderRequest(
        "https://cloud.ibm.com/apidocs/watsonx-ai#text-chat",
        members("model_id project_id messages", model_id=TEXT, project_id=TEXT, messages=MESSAGES), ASKS, _WATSONX,
    ),
    "watsonx-generation": prompt(
        "https://cloud.ibm.com/apidocs/watsonx-ai#text-generation",
        members("model_id project_id input", model_id=TEXT, project_id=TEXT, input=TEXT,
                parameters=members("", max_new_tokens=COUNT)),
        ("input",),
        takes={**_WATSONX, "max_new_tokens": Place(("parameters", "max_new_tokens"), values.COUNTS)},
    ),
    "cohere-chat": ProviderRequest(
        "https://docs.cohere.com/reference/chat",
        members("model messages", model=TEXT, messages=MESSAGES, stream=TRUE), ASKS, MODEL, STREAM,
    ),
    "cohere-chat-v1": ProviderRequest(
        "https://docs.cohere.com/v1/reference/chat",
        members("message", model=TEXT, message=TEXT, stream=TRUE),
        {"inputs": Place(("message",)), "message": Place(("message",))}, MODEL, STREAM,
    ),
    "cohere-embedding": vectors(
        "https://docs.cohere.com/v1/reference/embed",
        members("model texts input_type", model=TEXT, **COHERE_TEXTS), ("texts",), "model", "input_type",
    ),
    "cohere-rerank": vectors(
        "https://docs.cohere.com/v1/reference/rerank",
        members("model query documents", model=TEXT, query=TEXT, documents=array(TEXT), top_n=COUNT),
        ("documents",), "model",
    ),
}  # fmt: skip
