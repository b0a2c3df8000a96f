"""Pages for judging search results by a language model: a prompt of two parts, the text taken out by a script."""

import json
from collections.abc import Mapping
from typing import Any

from integration_tests.interop.provider_dialects.dialect import Way, mapped
from integration_tests.interop.public_blueprints.aws_text import JUDGE, RETRIES, judges
from integration_tests.interop.public_blueprints.body import PublicBlueprint, commented
from integration_tests.interop.public_blueprints.keyed_providers import (
    AZURE,
    AZURE_KEY,
    AZURE_PATH,
    AZURE_URL,
    CHAT,
    CHAT_URL,
    CONTENTS,
    GEMINI,
    GEMINI_KEY,
    GEMINI_PATH,
    GEMINI_URL,
    http,
)
from integration_tests.interop.public_blueprints.provider_bodies import CANDIDATES, STREAM_WITH_USAGE, completion

from tests.providers.recorded_streams import QUESTION

JUDGES = [{"role": "system", "content": "You judge."}, {"role": "user", "content": QUESTION}]
JUDGE_PROMPT = json.dumps(JUDGES).replace('"You judge."', '"${parameters.system_prompt}"')
JUDGE_MESSAGES = JUDGE_PROMPT.replace(json.dumps(QUESTION), '"${parameters.user_prompt}"')


def _judge(
    name: str, key: str, url: str, template: str, path: str, sent: Mapping[str, Any], **more: Any
) -> list[PublicBlueprint]:
    """A page for judging search results: a prompt of two parts, the text taken out by a script."""
    more = {"way": Way("openai-chat", body=STREAM_WITH_USAGE), "response": completion("m"), **more}
    text = more.pop("text", "choices.0.message.content")
    rows = http(
        name, url, template, key, path, sent, more.pop("response"), prediction_parameters=JUDGE,
        predicted=mapped({"response": "42"}), post=judges(text), client_config=RETRIES, needs_painless=True, **more,
    )  # fmt: skip
    return rows if name.startswith("azure") else commented(rows)


def _judge_of_messages(name: str, key: str, url: str = CHAT_URL) -> list[PublicBlueprint]:
    parameters = {"endpoint": "$HOST", "model": "m", "messages": JUDGE_MESSAGES}
    sent = {"model": "m", "messages": JUDGES}
    return _judge(name, key, url, CHAT, "/v1/chat/completions", sent, parameters=parameters)


BLUEPRINTS: list[PublicBlueprint] = [
    *_judge(
        "azure as a judge",
        "openAI_key",
        f"{AZURE_URL}/chat/completions?api-version=${{parameters.api-version}}",
        json.dumps({"messages": "$"}).replace('"$"', JUDGE_MESSAGES),
        f"{AZURE_PATH}/chat/completions?api-version=2024-10-21",
        {"messages": JUDGES},
        parameters={**AZURE, "api-version": "2024-10-21"},
        **AZURE_KEY,
    ),
    *_judge_of_messages("deepseek as a judge", "deepSeek_key"),
    *_judge_of_messages("ollama as a judge", "openAI_key", CHAT_URL.replace("https", "http")),
    *_judge(
        "gemini as a judge",
        "gemini_key",
        GEMINI_URL,
        '{"systemInstruction":{"parts":[{"text":"${parameters.system_prompt}"}]},'
        '"contents":[{"role":"user","parts":[{"text":"${parameters.user_prompt}"}]}]}',
        GEMINI_PATH,
        {"systemInstruction": {"parts": [{"text": "You judge."}]}, "contents": CONTENTS},
        text="candidates.0.content.parts.0.text",
        response=CANDIDATES,
        **GEMINI_KEY,
        **GEMINI,
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
]
