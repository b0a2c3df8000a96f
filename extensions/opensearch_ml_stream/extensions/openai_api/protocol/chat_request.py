"""Read the body of `/v1/chat/completions` as a conversation.

https://platform.openai.com/docs/api-reference/chat/create. Also what others have added to it and clients send:
`top_k`, `min_p`, `cache_control`, the `reasoning_content` of earlier answers.
"""

from typing import Any

from opensearch_ml_stream.connectors.conversation.conversation import (
    AnswerFormat,
    Conversation,
    JSONObject,
    Tool,
    ToolChoice,
)
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.extensions.openai_api.protocol.chat_messages import read_messages
from opensearch_ml_stream.extensions.openai_api.protocol.members import HINTS, Members

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh")

SAMPLING: dict[str, type] = {
    "temperature": float,
    "top_p": float,
    "top_k": int,
    "min_p": float,
    "seed": int,
    "presence_penalty": float,
    "frequency_penalty": float,
    "logit_bias": dict,
    "n": int,
    "user": str,
    "metadata": dict,
    "service_tier": str,
}
"""Options that chat completions and completions share, and their kinds."""

_OPTIONS = {
    **SAMPLING,
    "logprobs": bool,
    "top_logprobs": int,
    "reasoning_effort": str,
    "verbosity": str,
    "modalities": list,
    "audio": dict,
}
_TOOLS = frozenset({"tools", "tool_choice", "functions", "function_call"})


def read_chat_request(body: JSONObject) -> Conversation:
    """Return the conversation of a body; InvalidRequest names the member that is wrong."""
    members, unknown = Members(body), dict[str, Any]()
    names = {"turns": "messages", "answer_format": "response_format"}
    turns = read_messages(members.need("messages", list), unknown)
    tools, tool_choice = _read_all_tools(members, unknown, names) if members.has_any(_TOOLS) else ((), None)
    options = read_options(members, _OPTIONS, names)
    parallel = members.take("parallel_tool_calls", bool)
    answer_format = _read_format(members.take("response_format", dict), unknown)
    members.drop(*HINTS)
    return Conversation(
        turns,
        tools,
        tool_choice,
        parallel,
        answer_format,
        options,
        {**unknown, **members.unread()},
        names,
    )


def read_options(members: Members, kinds: dict[str, type], names: dict[str, str]) -> dict[str, Any]:
    """Return the options; `names` gets those that the client calls otherwise."""
    options = members.options(kinds)
    limit, completion_limit = members.take("max_tokens", int), members.take("max_completion_tokens", int)
    if completion_limit is not None:
        names["max_tokens"] = "max_completion_tokens"
        limit = completion_limit
    if limit is not None:
        options["max_tokens"] = limit
    if (safety := members.take("safety_identifier", str)) is not None and "user" not in options:
        names["user"] = "safety_identifier"
        options["user"] = safety
    if options.get("reasoning_effort", EFFORTS[0]) not in EFFORTS:
        raise InvalidRequest(f"reasoning_effort must be one of {', '.join(EFFORTS)}")
    if stop := _read_stop(members.take_any("stop")):
        options["stop"] = stop
    return options


def _read_stop(value: Any) -> list[str]:
    stops = [value] if isinstance(value, str) else value or []
    if not isinstance(stops, list) or not all(isinstance(one, str) for one in stops):
        raise InvalidRequest("stop must be a string or an array of strings")
    return stops


def _read_all_tools(
    members: Members, unknown: dict[str, Any], names: dict[str, str]
) -> tuple[tuple[Tool, ...], ToolChoice | None]:
    """Return the tools and which of them are to be called, in this form and in that from before there were tools."""
    tools = _read_tools(members.take("tools", list) or [], unknown)
    choice, allowed = _read_tool_choice(members.take_any("tool_choice"), unknown)
    if (functions := members.take("functions", list)) is not None:
        names["tools"] = "functions"
        tools += [_read_function(Members(one, f"functions[{place}]"), unknown) for place, one in enumerate(functions)]
    if (call := members.take_any("function_call")) is not None:
        names["tool_choice"] = "function_call"
        choice, allowed = _read_function_choice(call, unknown), None
    return tuple(tool for tool in tools if allowed is None or tool.name in allowed), choice


def _read_tools(tools: list[Any], unknown: dict[str, Any]) -> list[Tool]:
    read: list[Tool] = []
    for place, value in enumerate(tools):
        members = Members(value, f"tools[{place}]")
        kind = members.need("type", str)
        if kind == "function":
            cache = members.take("cache_control", dict)
            function = Members(members.take_any("function"), members.path("function"))
            read.append(_read_function(function, unknown, cache))
            unknown.update(members.unread())
        else:
            unknown[f"tools[{place}]"] = value
    return read


def _read_function(members: Members, unknown: dict[str, Any], cache: JSONObject | None = None) -> Tool:
    tool = Tool(
        members.need("name", str),
        members.take("description", str) or "",
        members.take("parameters", dict),
        members.take("strict", bool),
        members.take("cache_control", dict) or cache,
    )
    unknown.update(members.unread())
    return tool


def _read_tool_choice(value: Any, unknown: dict[str, Any]) -> tuple[ToolChoice | None, frozenset[str] | None]:
    """Return the choice, and the names of the tools that alone are allowed, None for all."""
    if value is None:
        return None, None
    if value in ("auto", "none", "required"):
        return ToolChoice(value), None
    if not isinstance(value, dict):
        raise InvalidRequest("tool_choice must be auto, none, required or an object")
    members = Members(value, "tool_choice")
    kind = members.need("type", str)
    choice: tuple[ToolChoice, frozenset[str] | None]
    if kind == "function":
        choice = ToolChoice("named", _name(members.take_any("function"), "tool_choice.function", unknown)), None
    elif kind == "allowed_tools":
        choice = _read_allowed(Members(members.take_any("allowed_tools"), "tool_choice.allowed_tools"), unknown)
    else:
        unknown["tool_choice"] = value
        return None, None
    unknown.update(members.unread())
    return choice


def _read_allowed(members: Members, unknown: dict[str, Any]) -> tuple[ToolChoice, frozenset[str]]:
    mode = members.need("mode", str)
    if mode not in ("auto", "required"):
        raise InvalidRequest(f"{members.path('mode')} must be auto or required")
    names: list[str] = []
    for place, value in enumerate(members.need("tools", list)):
        tool = Members(value, f"{members.path('tools')}[{place}]")
        tool.drop("type")  # there is one alone
        names.append(_name(tool.take_any("function"), tool.path("function"), unknown))
        unknown.update(tool.unread())
    unknown.update(members.unread())
    return ToolChoice("auto" if mode == "auto" else "required"), frozenset(names)


def _read_function_choice(value: Any, unknown: dict[str, Any]) -> ToolChoice:
    if value in ("auto", "none"):
        return ToolChoice(value)
    return ToolChoice("named", _name(value, "function_call", unknown))


def _name(value: Any, path: str, unknown: dict[str, Any]) -> str:
    members = Members(value, path)
    name = members.need("name", str)
    unknown.update(members.unread())
    return name


def _read_format(value: dict[str, Any] | None, unknown: dict[str, Any]) -> AnswerFormat | None:
    if value is None:
        return None
    members = Members(value, "response_format")
    kind = members.need("type", str)
    if kind == "text":
        return None
    if kind == "json_object":
        return AnswerFormat("json")
    if kind != "json_schema":
        unknown["response_format"] = value
        return None
    schema = Members(members.take_any("json_schema"), members.path("json_schema"))
    unknown.update(members.unread())
    return read_schema(schema, schema.take("schema", dict), unknown)


def read_schema(members: Members, schema: JSONObject | None, unknown: dict[str, Any]) -> AnswerFormat:
    """Return the format of an answer that keeps to a schema, of the members beside that."""
    name, description = members.take("name", str) or "", members.take("description", str) or ""
    answer_format = AnswerFormat("schema", name, description, schema, members.take("strict", bool))
    unknown.update(members.unread())
    return answer_format
