"""Read the bodies of `/v1/chat/completions` and `/v1/completions` as conversations."""

from typing import Any

from opensearch_ml_stream.connectors.conversation.conversation import (
    AnswerFormat,
    Call,
    Conversation,
    JSONObject,
    Media,
    Part,
    Reasoning,
    Result,
    Role,
    Text,
    Tool,
    ToolChoice,
    Turn,
)
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.extensions.openai_api.protocol.content_parts import read_content
from opensearch_ml_stream.extensions.openai_api.protocol.envelope import REASONING, SIGNATURE
from opensearch_ml_stream.extensions.openai_api.protocol.request_members import HINTS, Members

_PLAIN_ROLES: dict[str, Role] = {"system": "system", "developer": "developer", "user": "user"}
_OF_ANSWERS = ("annotations", "parsed")  # members of answers that change nothing when they are sent back
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh")

_SAMPLING: dict[str, type] = {
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
    **_SAMPLING,
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
    turns = _read_messages(members.need("messages", list), unknown)
    tools, tool_choice = _read_all_tools(members, unknown, names) if members.has_any(_TOOLS) else ((), None)
    options = _read_options(members, _OPTIONS, names)
    parallel = members.take("parallel_tool_calls", bool)
    answer_format = read_format(members.take("response_format", dict), "response_format", unknown)
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


def read_completions_request(body: JSONObject) -> Conversation:
    """Return the conversation of a body; InvalidRequest names the member that is wrong."""
    members = Members(body)
    names = {"turns": "prompt"}
    prompt = _read_prompt(members.take_any("prompt"))
    options = _read_options(members, _SAMPLING, names)
    if (logprobs := members.take("logprobs", int)) is not None:
        options |= {"logprobs": True, "top_logprobs": logprobs}
        names["top_logprobs"] = "logprobs"
    turns = (Turn("user", (Text(prompt),)),)
    return Conversation(turns, options=options, unknown=members.unread(), members=names)


def _read_messages(messages: list[Any], unknown: dict[str, Any]) -> tuple[Turn, ...]:
    """Return the turns; InvalidRequest names the member that is wrong. What is not known here goes to `unknown`."""
    reading = _Messages(unknown)
    for place, message in enumerate(messages):
        reading.read(Members(message, f"messages[{place}]"), place)
    reading.end_results()
    return tuple(reading.turns)


class _Messages:
    """Reads messages in order. A result gets the name of its tool from the call before it."""

    def __init__(self, unknown: dict[str, Any]) -> None:
        self.turns: list[Turn] = []
        self._unknown = unknown
        self._names: dict[str, str] = {}  # of the tools, by the ids of their calls
        self._function_id = ""  # of the last call of `functions`, which has none of its own
        self._results: list[Part] = []  # of the calls of one answer; together they are one turn

    def read(self, members: Members, place: int) -> None:
        role = members.need("role", str)
        if role in ("tool", "function"):
            self._read_result(members, is_tool=role == "tool")
        elif role == "assistant":
            self._add("assistant", self._answer(members, place), members)
        elif role in _PLAIN_ROLES:
            self._add(_PLAIN_ROLES[role], self._content(members), members)
        else:
            raise InvalidRequest(f"{members.path('role')} must be system, developer, user, assistant, tool or function")
        self._unknown.update(members.unread())

    def _add(self, role: Role, parts: list[Part], members: Members) -> None:
        self.end_results()
        self.turns.append(Turn(role, tuple(parts), members.take("name", str) or ""))

    def end_results(self) -> None:
        if self._results:
            self.turns.append(Turn("user", tuple(self._results)))
            self._results = []

    def _content(self, members: Members) -> list[Part]:
        return [*read_content(members.take_any("content"), members.path("content"), self._unknown)]

    def _read_result(self, members: Members, *, is_tool: bool) -> None:
        parts: tuple[Text | Media, ...] = tuple(
            read_content(members.take_any("content"), members.path("content"), self._unknown)
        )
        name = members.take("name", str) or ""
        id = members.need("tool_call_id", str) if is_tool else self._function_id
        result = Result(id, parts, self._names.get(id, name), cache=members.take("cache_control", dict))
        self._results.append(result)

    def _answer(self, members: Members, place: int) -> list[Part]:
        members.drop(*_OF_ANSWERS)
        parts: list[Part] = []
        reasoning, signature = members.take(REASONING, str) or "", members.take(SIGNATURE, str) or ""
        if reasoning or signature:
            parts.append(Reasoning(reasoning, signature))
        content = members.take_any("content")
        if content is not None and content != "":
            parts += read_content(content, members.path("content"), self._unknown)
        if refusal := members.take("refusal", str):
            parts.append(Text(refusal))
        if (sound := members.take("audio", dict)) is not None:  # the provider has kept it
            parts.append(Media("audio", file_id=Members(sound, members.path("audio")).need("id", str)))
        for number, call in enumerate(members.take("tool_calls", list) or ()):
            parts += self._call(Members(call, f"{members.path('tool_calls')}[{number}]"))
        if (function := members.take("function_call", dict)) is not None:
            self._function_id = f"call_{place}"
            parts.append(self._function(Members(function, members.path("function_call")), self._function_id))
        return parts

    def _call(self, members: Members) -> list[Part]:
        members.drop("index")  # that fragments of a stream have
        kind = members.take("type", str) or "function"
        if kind != "function":
            self._unknown[members.path("type")] = kind
            return []
        id = members.need("id", str)
        call = self._function(Members(members.take_any("function"), members.path("function")), id)
        self._unknown.update(members.unread())
        return [call]

    def _function(self, members: Members, id: str) -> Call:
        call = Call(id, members.need("name", str), members.take("arguments", str) or "{}")
        self._names[id] = call.name
        self._unknown.update(members.unread())
        return call


def _read_options(members: Members, kinds: dict[str, type], names: dict[str, str]) -> dict[str, Any]:
    """Return the options; `names` gets the client's names of those that it names differently."""
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
    """Return the tools and which of them to call, in the form of `tools` and in the older one of `functions`."""
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
    choice = read_mode(members)
    names: list[str] = []
    for place, value in enumerate(members.need("tools", list)):
        tool = Members(value, f"{members.path('tools')}[{place}]")
        tool.drop("type")  # there is only one
        names.append(_name(tool.take_any("function"), tool.path("function"), unknown))
        unknown.update(tool.unread())
    unknown.update(members.unread())
    return choice, frozenset(names)


def read_mode(members: Members) -> ToolChoice:
    """Return how the allowed tools are to be called."""
    mode = members.need("mode", str)
    if mode not in ("auto", "required"):
        raise InvalidRequest(f"{members.path('mode')} must be auto or required")
    return ToolChoice("auto" if mode == "auto" else "required")


def _read_function_choice(value: Any, unknown: dict[str, Any]) -> ToolChoice:
    if value in ("auto", "none"):
        return ToolChoice(value)
    return ToolChoice("named", _name(value, "function_call", unknown))


def _name(value: Any, path: str, unknown: dict[str, Any]) -> str:
    members = Members(value, path)
    name = members.need("name", str)
    unknown.update(members.unread())
    return name


def read_format(
    value: JSONObject | None, path: str, unknown: dict[str, Any], *, is_flat: bool = False
) -> AnswerFormat | None:
    """Return the format of an answer. The members of a schema are in `json_schema`, or beside the type if flat."""
    if value is None:
        return None
    members = Members(value, path)
    kind = members.need("type", str)
    if kind == "text":
        return None
    if kind == "json_object":
        return AnswerFormat("json")
    if kind != "json_schema":
        unknown[path] = value
        return None
    schema = members if is_flat else Members(members.take_any(kind), members.path(kind))
    name, description = schema.take("name", str) or "", schema.take("description", str) or ""
    keeps_to = (schema.need if is_flat else schema.take)("schema", dict)
    answer_format = AnswerFormat("schema", name, description, keeps_to, schema.take("strict", bool))
    unknown.update({**members.unread(), **schema.unread()})
    return answer_format


def _read_prompt(value: Any) -> str:
    prompts = value if isinstance(value, list) else [value]
    if len(prompts) > 1 and all(isinstance(one, str) for one in prompts):
        raise InvalidRequest(f"prompt must be one text for this model; the request has {len(prompts)}")
    if len(prompts) != 1 or not isinstance(prompts[0], str):
        raise InvalidRequest("prompt must be a string; this model does not take arrays of tokens")
    return prompts[0]
