"""What clients can say, one thing at a time: a body without it, the body with it, and by what it is known again."""

from dataclasses import dataclass
from typing import Any

from tests.client_dialects.clients import CHAT, COMPLETIONS, MESSAGES, RESPONSES, Body

_HI = {"role": "user", "content": "Hi"}
_SCHEMA = {"type": "object", "properties": {"marked": {"type": "string"}}, "additionalProperties": False}
_DATA = "TUFSSw=="
_IMAGE, _AUDIO = f"data:image/png;base64,{_DATA}", {"data": _DATA, "format": "wav"}
_URL = "https://example.com/marked.png"


@dataclass(frozen=True, slots=True)
class Feature:
    """One thing to say. It passed if the expression `mark` is found in what is sent more often than without it."""

    name: str
    mark: str
    bodies: dict[str, tuple[Body, Body]]
    """By the client's dialect: the body without it, and with it."""


def _feature(name: str, mark: str, **bodies: Any) -> Feature:
    """A feature; `bodies` are members by client, or a pair of those without it and with it."""
    clients = {"chat": CHAT, "responses": RESPONSES, "messages": MESSAGES, "completions": COMPLETIONS}
    found: dict[str, tuple[Body, Body]] = {}
    for key, said in bodies.items():
        client = clients[key]
        without, more = said if isinstance(said, tuple) else ({}, said)
        found[client.dialect] = ({**client.least, **without}, {**client.least, **more})
    return Feature(name, mark, found)


def _chat_part(part: Body) -> Body:
    return {"messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}, part]}]}


def _input_part(part: Body) -> Body:
    return {"input": [{"role": "user", "content": [{"type": "input_text", "text": "Hi"}, part]}]}


def _block(kind: str, **source: str) -> Body:
    return {"messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}, _media(kind, **source)]}]}


def _media(kind: str, **source: str) -> Body:
    return {"type": kind, "source": source}


def _said(name: str, mark: str, parts: dict[str, Body]) -> Feature:
    wrap = {"chat": _chat_part, "responses": _input_part}
    return _feature(name, mark, **{key: wrap[key](part) if key in wrap else part for key, part in parts.items()})


_CHAT_TOOL: Body = {"type": "function", "function": {"name": "weather", "parameters": _SCHEMA}}
_INPUT_TOOL: Body = {"type": "function", "name": "weather", "parameters": _SCHEMA}
_TOOL: Body = {"name": "weather", "input_schema": _SCHEMA}
_TOOLS = {"chat": [_CHAT_TOOL], "responses": [_INPUT_TOOL], "messages": [_TOOL]}


def _of_tools(name: str, mark: str, **members: Body) -> Feature:
    """A feature of requests with a tool."""
    return _feature(
        name, mark, **{key: ({"tools": _TOOLS[key]}, {"tools": _TOOLS[key], **more}) for key, more in members.items()}
    )


def _chat_talk(answer: Body, content: Any = "rain") -> Body:
    """A tool was called; the answer with the call has these members, too."""
    call = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"marked":"Ulm"}'}}
    result = {"role": "tool", "tool_call_id": "call_1", "content": content}
    return {
        "tools": [_CHAT_TOOL],
        "messages": [_HI, {"role": "assistant", "content": None, "tool_calls": [call], **answer}, result],
    }


def _input_talk(*items: Body, output: Any = "rain") -> Body:
    call = {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": '{"marked":"Ulm"}'}
    result = {"type": "function_call_output", "call_id": "call_1", "output": output}
    return {"tools": [_INPUT_TOOL], "input": [_HI, *items, call, result]}


def _block_talk(*blocks: Body, **result: Any) -> Body:
    call = {"type": "tool_use", "id": "call_1", "name": "weather", "input": {"marked": "Ulm"}}
    returned = {"type": "tool_result", "tool_use_id": "call_1", "content": "rain", **result}
    return {
        "tools": [_TOOL],
        "messages": [
            _HI, {"role": "assistant", "content": [*blocks, call]}, {"role": "user", "content": [returned]},
        ],
    }  # fmt: skip


_CACHE = {"cache_control": {"type": "ephemeral"}}
_FORMAT = {"name": "answer", "schema": _SCHEMA}

_MESSAGES = (
    _feature(
        "system",
        "MARKED",
        chat={"messages": [{"role": "system", "content": "MARKED"}, _HI]},
        responses={"instructions": "MARKED"},
        messages={"system": "MARKED"},
    ),
    _feature(
        "developer",
        '"developer"',
        chat={"messages": [{"role": "developer", "content": "MARKED"}, _HI]},
        responses={"input": [{"role": "developer", "content": "MARKED"}, _HI]},
    ),
    _feature(
        "system, within the conversation",
        "MARKED",
        **{
            key: {place: [_HI, {"role": "assistant", "content": "Hello"}, {"role": "system", "content": "MARKED"}, _HI]}
            for key, place in (("chat", "messages"), ("responses", "input"), ("messages", "messages"))
        },
    ),
    _feature("name of a speaker", '"ann"', chat={"messages": [{**_HI, "name": "ann"}]}),
    _said(
        "image by its data",
        _DATA,
        {
            "chat": {"type": "image_url", "image_url": {"url": _IMAGE}},
            "responses": {"type": "input_image", "image_url": _IMAGE},
            "messages": _block("image", type="base64", media_type="image/png", data=_DATA),
        },
    ),
    _said(
        "image by a URL",
        _URL,
        {
            "chat": {"type": "image_url", "image_url": {"url": _URL}},
            "responses": {"type": "input_image", "image_url": _URL},
            "messages": _block("image", type="url", url=_URL),
        },
    ),
    _feature(
        "resolution of an image (`detail`)",
        '"low"|RESOLUTION_LOW',
        chat=tuple(
            _chat_part({"type": "image_url", "image_url": {"url": _IMAGE, **detail}})
            for detail in ({}, {"detail": "low"})
        ),
        responses=tuple(
            _input_part({"type": "input_image", "image_url": _IMAGE, **detail}) for detail in ({}, {"detail": "low"})
        ),
    ),
    _said("audio", _DATA, {"chat": {"type": "input_audio", "input_audio": _AUDIO}}),
    _said(
        "PDF by its data",
        _DATA,
        {
            "chat": {
                "type": "file",
                "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{_DATA}"},
            },
            "responses": {
                "type": "input_file",
                "filename": "a.pdf",
                "file_data": f"data:application/pdf;base64,{_DATA}",
            },
            "messages": _block("document", type="base64", media_type="application/pdf", data=_DATA),
        },
    ),
    _said(
        "PDF by a URL",
        "marked.pdf",
        {
            "responses": {"type": "input_file", "file_url": "https://example.com/marked.pdf"},
            "messages": _block("document", type="url", url="https://example.com/marked.pdf"),
        },
    ),
    _said(
        "file by its id",
        "file-marked",
        {
            "chat": {"type": "file", "file": {"file_id": "file-marked"}},
            "responses": {"type": "input_file", "file_id": "file-marked"},
            "messages": _block("document", type="file", file_id="file-marked"),
        },
    ),
    _feature("document of plain text", "MARKED|TUFSS0VE", messages=_block("document", type="text", data="MARKED")),
    _feature(
        "`cache_control` of a text",
        "cache_control|cachePoint",
        chat=tuple(
            {"messages": [{"role": "user", "content": [{"type": "text", "text": "Hi", **cache}]}]}
            for cache in ({}, _CACHE)
        ),
        messages=tuple(
            {"messages": [{"role": "user", "content": [{"type": "text", "text": "Hi", **cache}]}]}
            for cache in ({}, _CACHE)
        ),
    ),
)

_TOOL_USE = (
    _feature("tools", "marked", **{key: {"tools": tools} for key, tools in _TOOLS.items()}),
    _of_tools("a call and its result", "Ulm", chat=_chat_talk({}), responses=_input_talk(), messages=_block_talk()),
    _feature(
        "result that is an error",
        r'"is_error":true|"status":"error"|"error":',
        messages=(_block_talk(), _block_talk(is_error=True)),
    ),
    _feature(
        "image in a result",
        _DATA,
        responses=(_input_talk(), _input_talk(output=[{"type": "input_image", "image_url": _IMAGE}])),
        messages=(
            _block_talk(),
            _block_talk(content=[_media("image", type="base64", media_type="image/png", data=_DATA)]),
        ),
    ),
    _of_tools(
        "arguments hold to their schema (`strict`)",
        r'"strict":true|"strict_tools":true|VALIDATED|"validated"',
        chat={"tools": [{"type": "function", "function": {**_CHAT_TOOL["function"], "strict": True}}]},
        responses={"tools": [{**_INPUT_TOOL, "strict": True}]},
        messages={"tools": [{**_TOOL, "strict": True}]},
    ),
    _of_tools(
        "`cache_control` of a tool",
        "cache_control|cachePoint",
        chat={"tools": [{**_CHAT_TOOL, **_CACHE}]},
        messages={"tools": [{**_TOOL, **_CACHE}]},
    ),
    *(
        _of_tools(
            f"tool choice: {title}",
            mark,
            chat={"tool_choice": chat},
            responses={"tool_choice": chat if isinstance(chat, str) else {"type": "function", "name": "weather"}},
            messages={"tool_choice": messages},
        )
        for title, mark, chat, messages in (
            ("the model's", r"\b(auto|AUTO)\b", "auto", {"type": "auto"}),
            ("none", r"\b(none|NONE)\b", "none", {"type": "none"}),
            ("any", r"\b(required|REQUIRED|any|ANY)\b", "required", {"type": "any"}),
            (
                "one by name",
                '"weather"',
                {"type": "function", "function": {"name": "weather"}},
                {"type": "tool", "name": "weather"},
            ),
        )
    ),
    _of_tools(
        "one call at a time",
        r'"parallel_tool_calls":false|"disable_parallel_tool_use":true',
        chat={"parallel_tool_calls": False},
        responses={"parallel_tool_calls": False},
        messages={"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
    ),
    _feature(
        "tools that the provider runs",
        "web_search",
        responses={"tools": [{"type": "web_search"}]},
        messages={"tools": [{"type": "web_search_20250305", "name": "web_search"}]},
    ),
    _feature(
        "what is to be forgotten (`context_management`)",
        "clear_thinking",
        messages={"context_management": {"edits": [{"type": "clear_thinking_20251015"}]}},
    ),
    _feature(
        "free-form tools (`custom`)", "apply_patch", responses={"tools": [{"type": "custom", "name": "apply_patch"}]}
    ),
    _feature(
        "tools in a namespace",
        '"(docs__)?search"',
        responses={"tools": [{"type": "namespace", "name": "docs", "tools": [{"type": "function", "name": "search"}]}]},
    ),
)

_REASONING = (
    _feature(
        "reasoning effort",
        '"high"',
        chat={"reasoning_effort": "high"},
        responses={"reasoning": {"effort": "high"}},
        messages={"output_config": {"effort": "high"}},
    ),
    _feature(
        "no reasoning",
        r'"(none|disabled)"|"[a-z]*[tT]hink[a-z]*Budget":0|"enable(d|_thinking)":false|"think":false',
        chat={"reasoning_effort": "none"},
        responses={"reasoning": {"effort": "none"}},
        messages={"thinking": {"type": "disabled"}},
    ),
    _feature(
        "budget of tokens for reasoning",
        r":2048\b",
        messages=({"max_tokens": 9000}, {"max_tokens": 9000, "thinking": {"type": "enabled", "budget_tokens": 2048}}),
    ),
    _feature("summary of the reasoning", r"summar|includeThoughts", responses={"reasoning": {"summary": "auto"}}),
    _feature(
        "earlier reasoning with its proof",
        "PROOF",
        chat=(_chat_talk({}), _chat_talk({"reasoning_content": "Hm", "reasoning_signature": "PROOF"})),
        responses=(
            _input_talk(),
            _input_talk(
                {
                    "type": "reasoning",
                    "summary": [{"type": "summary_text", "text": "Hm"}],
                    "encrypted_content": "signature:PROOF",
                }
            ),
        ),
        messages=(_block_talk(), _block_talk({"type": "thinking", "thinking": "Hm", "signature": "PROOF"})),
    ),
    _feature(
        "earlier reasoning, encrypted",
        "SECRETS",
        responses=(_input_talk(), _input_talk({"type": "reasoning", "summary": [], "encrypted_content": "SECRETS"})),
        messages=(_block_talk(), _block_talk({"type": "redacted_thinking", "data": "SECRETS"})),
    ),
    _feature(
        "earlier reasoning without a proof",
        "Thought",
        chat=(_chat_talk({}), _chat_talk({"reasoning_content": "Thought"})),
        messages=(_block_talk(), _block_talk({"type": "thinking", "thinking": "Thought", "signature": ""})),
    ),
)

_ANSWER = (
    _feature(
        "JSON",
        r'json_object|"application/json"|"format":"json"',
        chat={"response_format": {"type": "json_object"}},
        responses={"text": {"format": {"type": "json_object"}}},
    ),
    _feature(
        "JSON of a schema",
        "marked",
        chat={"response_format": {"type": "json_schema", "json_schema": _FORMAT}},
        responses={"text": {"format": {"type": "json_schema", **_FORMAT}}},
        messages={"output_config": {"format": {"type": "json_schema", "schema": _SCHEMA}}},
    ),
    _feature(
        "limit of tokens",
        r":1234\b",
        chat={"max_completion_tokens": 1234},
        responses={"max_output_tokens": 1234},
        messages={"max_tokens": 1234},
        completions={"max_tokens": 1234},
    ),
)


def _option(name: str, value: Any, mark: str, *clients: str, also: Body | None = None) -> Feature:
    without = also or {}
    return _feature(
        f"`{name}`", mark, **{client: (without, {**without, name: value}) for client in clients or ("chat",)}
    )


_OPENAI = ("chat", "completions")
_ALL = ("chat", "responses", "messages", "completions")
_OPTIONS = (
    _option("temperature", 0.375, r":0\.375", *_ALL),
    _option("top_p", 0.625, r":0\.625", *_ALL),
    _option("top_k", 37, r":37\b", *_OPENAI, "messages"),
    _option("min_p", 0.0625, r":0\.0625", *_OPENAI),
    _option("stop", ["MARKED"], "MARKED", *_OPENAI),
    _option("stop_sequences", ["MARKED"], "MARKED", "messages"),
    _option("seed", 4711, r":4711\b", *_OPENAI),
    _option("presence_penalty", 0.25, r":0\.25", *_OPENAI),
    _option("frequency_penalty", 0.125, r":0\.125", *_OPENAI),
    _option("logit_bias", {"4712": 1}, '"4712"', *_OPENAI),
    _option("n", 2, r":2\b", *_OPENAI),
    _option("logprobs", True, r"logprobs", "chat"),
    _option("logprobs", 3, r":3\b", "completions"),
    _option("top_logprobs", 3, r":3\b", "chat", also={"logprobs": True}),
    _option("top_logprobs", 3, r":3\b", "responses"),
    _option("verbosity", "low", '"low"', "chat"),
    _feature("`text.verbosity`", '"low"', responses={"text": {"verbosity": "low"}}),
    _option("user", "USER-1", "USER-1", *_OPENAI, "responses"),
    _feature("`metadata.user_id`", "USER-1", messages={"metadata": {"user_id": "USER-1"}}),
    _option("metadata", {"of": "META-1"}, "META-1", *_OPENAI, "responses"),
    _option("service_tier", "flex", '"flex"', "chat", "responses"),
    _option("service_tier", "standard_only", '"standard_only"', "messages"),
    _feature("answers of sound", "alloy", chat={"modalities": ["text", "audio"], "audio": {"voice": "alloy"}}),
    _option("suffix", "MARKED", "MARKED", "completions"),
    _option("prompt_cache_key", "MARKED", "MARKED", "chat", "responses"),
    _feature("members that are unknown here", "made_up", **{key: {"made_up": 1} for key in _ALL}),
    _feature(
        "members of messages that are unknown here",
        "made_up",
        chat={"messages": [{**_HI, "made_up": 1}]},
        responses={"input": [{**_HI, "made_up": 1}]},
        messages={"messages": [{"role": "user", "content": [{"type": "text", "text": "Hi", "made_up": 1}]}]},
    ),
)

FEATURES = (*_MESSAGES, *_TOOL_USE, *_REASONING, *_ANSWER, *_OPTIONS)
