"""Text models at Amazon Bedrock."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from integration_tests.interop.provider_dialects.dialect import Way, mapped
from integration_tests.interop.public_blueprints.body import (
    KEYS,
    ROLE,
    PublicBlueprint,
    calls,
    commented,
    connector,
    row,
)
from integration_tests.interop.public_blueprints.provider_bodies import STREAM_WITH_USAGE, completion, frames

from tests.providers.eventstream_frames import METRICS, invoke_chunk
from tests.providers.recorded_streams import QUESTION, Recorded, tokens

INVOKE = "https://bedrock-runtime.${parameters.region}.amazonaws.com/model/${parameters.model}/invoke"
CONVERSE = INVOKE.replace("/invoke", "/converse")
HASHED = {"content-type": "application/json", "x-amz-content-sha256": "required"}
BOTH = (KEYS, ROLE)
RETRIES = {"max_retry_times": 3, "retry_backoff_policy": "exponential_full_jitter"}
MESSAGES = [{"role": "user", "content": QUESTION}]
JUDGE = {"system_prompt": "You judge.", "user_prompt": QUESTION}

CLAUDE_2 = Recorded(
    "invoke claude 2",
    "bedrock/invoke",
    b"".join([
        invoke_chunk({"completion": " 4", "stop_reason": None, "stop": None}),
        invoke_chunk({"completion": "2", "stop_reason": "stop_sequence", "stop": "\n\nHuman:", **METRICS}),
    ]),
    " 42",
    "stop",
    "stop_sequence",
    usage=tokens(11, 5),
)  # fmt: skip


def judges(path: str) -> str:
    """The Painless function that takes the text out of a response."""
    keys = "".join(f"['{key}']" if not key.isdigit() else f"[{key}]" for key in path.split("."))
    return (
        "\n      def name = 'response';\n"
        f"      def text = params{keys};\n"
        '      return \'{"name":"\' + name + \'","dataAsMap":{"response":"\' + escape(text) + \'"}}\';\n    '
    )


def bedrock(
    name: str, model: str, template: str, parameters: Mapping[str, Any], sent: Any, response: Any, **more: Any
) -> list[PublicBlueprint]:
    """InvokeModel or, by `url`, Converse.

    `more`: `prediction_parameters`, `way`, `predicted`, `credentials` and what `connector` takes.
    """
    url = more.pop("url", INVOKE)
    own = {"region": "us-east-1", "service_name": "bedrock", "model": model, **parameters}
    path = f"/model/{model.replace(':', '%3A')}/{url.rpartition('/')[2]}"
    way: Way | None = more.pop("way", None)
    streamed = None if way is None else way.of(path, sent)
    prediction = {"parameters": more.pop("prediction_parameters", {"inputs": QUESTION})}
    predicted = more.pop("predicted", None)
    rows: dict[str, Any] = {key: more.pop(key) for key in ("needs_painless", "stream_says") if key in more}
    credentials: Sequence[Mapping[str, str]] = more.pop("credentials", BOTH)
    body = connector(name, url, template, own, KEYS, protocol="aws_sigv4", **more)
    return row(
        name, body, calls(path, sent, response, prediction, predicted, streamed, aws="bedrock"), credentials, **rows
    )


_CLAUDE_BODY = (
    '{ "anthropic_version": "${parameters.anthropic_version}", "max_tokens": ${parameters.max_tokens}, '
    '"temperature": ${parameters.temperature}, "messages": ${parameters.messages} }'
)
_THINKING = ', "thinking": {"type": "enabled", "budget_tokens": ${parameters.budget_tokens} } }'
_CLAUDE_PARAMETERS = {"max_tokens": 8000, "temperature": 1, "anthropic_version": "bedrock-2023-05-31"}
_CLAUDE_RESPONSE = {"type": "message", "content": [{"type": "text", "text": "42"}], "stop_reason": "end_turn"}
_TEXT = mapped({"response": "42"})
_CONVERSE_RESPONSE = {
    "output": {"message": {"role": "assistant", "content": [{"text": "42"}]}},
    "stopReason": "end_turn",
}


def _claude(name: str, model: str) -> list[PublicBlueprint]:
    """Claude 3.7 and 4 have a page each, with and without thinking."""
    sent = {**_CLAUDE_PARAMETERS, "messages": MESSAGES}
    more: dict[str, Any] = {"prediction_parameters": {"messages": MESSAGES}, "way": frames("bedrock-invoke-anthropic")}
    plain = bedrock(name, model, _CLAUDE_BODY, _CLAUDE_PARAMETERS, sent, _CLAUDE_RESPONSE, **more)
    thinking = {**_CLAUDE_PARAMETERS, "budget_tokens": 2000}
    template = _CLAUDE_BODY.removesuffix(" }") + _THINKING
    sent = {**sent, "thinking": {"type": "enabled", "budget_tokens": 2000}}
    return [*plain, *bedrock(f"{name}, thinking", model, template, thinking, sent, _CLAUDE_RESPONSE, **more)]


def _claude_3() -> list[PublicBlueprint]:
    template = (
        '{"messages":[{"role":"user","content":[{"type":"text","text":"${parameters.inputs}"}]}],'
        '"anthropic_version":"${parameters.anthropic_version}","max_tokens":${parameters.max_tokens_to_sample}}'
    )
    parameters = {
        "auth": "Sig_V4",
        "max_tokens_to_sample": "8000",
        "anthropic_version": "bedrock-2023-05-31",
        "response_filter": "$.content[0].text",
    }
    sent = {
        "messages": [{"role": "user", "content": [{"type": "text", "text": QUESTION}]}],
        "anthropic_version": "bedrock-2023-05-31",
        "max_tokens": 8000,
    }
    more: dict[str, Any] = {"predicted": _TEXT, "way": frames("bedrock-invoke-anthropic")}
    return bedrock(
        "claude 3", "anthropic.claude-3-sonnet-20240229-v1:0", template, parameters, sent, _CLAUDE_RESPONSE, **more
    )


_CLAUDE_2_PROMPT = (
    '{"prompt":"\\n\\nHuman: ${parameters.inputs}\\n\\nAssistant:","max_tokens_to_sample":300,"temperature":0.5,'
    '"top_k":250,"top_p":1,"stop_sequences":["\\\\n\\\\nHuman:"]}'
)
_JURASSIC = {
    "prompt": "${parameters.inputs}", "maxTokens": 200, "temperature": 0.7, "topP": 1, "stopSequences": [],
    "countPenalty": {"scale": 0}, "presencePenalty": {"scale": 0}, "frequencyPenalty": {"scale": 0},
}  # fmt: skip
_CONVERSE_BODY = (
    '{"system":[{"text":"${parameters.system_prompt}"}],'
    '"messages":[{"role":"user","content":[{"type":"text","text":"${parameters.user_prompt}"}]}]}'
)
_SYSTEM = [{"text": "You judge."}]


def _part(**more: str) -> list[Any]:
    return [{"role": "user", "content": [{**more, "text": QUESTION}]}]


BLUEPRINTS: list[PublicBlueprint] = [
    *bedrock(
        "jurassic",
        "ai21.j2-mid-v1",
        json.dumps(_JURASSIC),
        {},
        {**_JURASSIC, "prompt": QUESTION},
        {"completions": [{"data": {"text": "42"}}]},
        predicted=_TEXT,
        post=judges("completions.0.data.text"),
        needs_painless=True,
        stream_says="path is",  # the model does not stream, so Bedrock refuses; nothing here could know
    ),
    *_claude("claude 3.7", "us.anthropic.claude-3-7-sonnet-20250219-v1:0"),
    *_claude("claude 4", "us.anthropic.claude-sonnet-4-20250514-v1:0"),
    *_claude_3(),
    *bedrock(
        "claude 2",
        "anthropic.claude-v2",
        _CLAUDE_2_PROMPT,
        {},
        {
            **{"prompt": f"\n\nHuman: {QUESTION}\n\nAssistant:", "max_tokens_to_sample": 300, "temperature": 0.5},
            **{"top_k": 250, "top_p": 1, "stop_sequences": ["\\n\\nHuman:"]},
        },
        {"completion": " 42", "stop_reason": "stop_sequence"},
        way=frames(CLAUDE_2),
    ),
    *bedrock(
        "converse",
        "anthropic.claude-3-5-sonnet-20240620-v1:0",
        _CONVERSE_BODY,
        {"system_prompt": "You judge.", "response_filter": "$.output.message.content[0].text"},
        {"system": _SYSTEM, "messages": _part(type="text")},
        _CONVERSE_RESPONSE,
        url=CONVERSE,
        prediction_parameters={"user_prompt": QUESTION},
        predicted=_TEXT,
        way=frames("bedrock-converse"),
        supports_structured_output=True,
    ),
    *row(
        "gpt-oss",
        connector(
            "gpt-oss",
            "https://bedrock-runtime.us-west-2.amazonaws.com/openai/v1/chat/completions",
            '{ "model": "${parameters.bedrock_model_id}", "messages": ${parameters.messages}, "stream": false }',
            {"region": "us-west-2", "service_name": "bedrock", "bedrock_model_id": "openai.gpt-oss-120b-1:0"},
            KEYS,
            protocol="aws_sigv4",
            headers=HASHED,
        ),
        calls(
            "/openai/v1/chat/completions",
            {"model": "openai.gpt-oss-120b-1:0", "messages": MESSAGES, "stream": False},
            completion("gpt-oss"),
            {"parameters": {"messages": MESSAGES}},
            streamed=Way("openai-chat", body=STREAM_WITH_USAGE).of(
                "/openai/v1/chat/completions", {"model": "openai.gpt-oss-120b-1:0", "messages": MESSAGES}
            ),
            aws="bedrock",
            region="us-west-2",
        ),
    ),
    *commented(
        bedrock(
            "claude as a judge",
            "anthropic.claude-3-5-sonnet-20240620-v1:0",
            '{"anthropic_version":"${parameters.anthropic_version}","max_tokens":${parameters.max_tokens},'
            '"system":"${parameters.system_prompt}",'
            '"messages":[{"role":"user","content":[{"type":"text","text":"${parameters.user_prompt}"}]}]}',
            {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 1000},
            {
                "anthropic_version": "bedrock-2023-05-31",
                "max_tokens": 1000,
                "system": "You judge.",
                "messages": _part(type="text"),
            },
            _CLAUDE_RESPONSE,
            prediction_parameters=JUDGE,
            predicted=_TEXT,
            way=frames("bedrock-invoke-anthropic"),
            post=judges("content.0.text"),
            client_config=RETRIES,
            needs_painless=True,
        )
    ),
    *commented(
        bedrock(
            "converse as a judge",
            "anthropic.claude-3-5-sonnet-20240620-v1:0",
            '{"system":[{"text":"${parameters.system_prompt}"}],'
            '"messages":[{"role":"user","content":[{"text":"${parameters.user_prompt}"}]}],'
            '"inferenceConfig":{"maxTokens":${parameters.max_tokens}}}',
            {"max_tokens": 1000},
            {"system": _SYSTEM, "messages": _part(), "inferenceConfig": {"maxTokens": 1000}},
            _CONVERSE_RESPONSE,
            url=CONVERSE,
            prediction_parameters=JUDGE,
            predicted=_TEXT,
            way=frames("bedrock-converse"),
            post=judges("output.message.content.0.text"),
            client_config=RETRIES,
            needs_painless=True,
        )
    ),
]
