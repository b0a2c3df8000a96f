"""Read the body of `/v1/responses` as a conversation.

https://platform.openai.com/docs/api-reference/responses/create. Items of one answer, such as a message and the calls
after it, become one turn, and so do consecutive outputs of calls.
"""

from typing import Any

from opensearch_ml_stream.connectors.conversation.conversation import (
    AnswerFormat,
    Call,
    Conversation,
    JSONObject,
    Part,
    Reasoning,
    Result,
    Role,
    Text,
    ToolChoice,
    Turn,
)
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.extensions.openai_api.protocol.completions_request import EFFORTS, read_format, read_mode
from opensearch_ml_stream.extensions.openai_api.protocol.content_parts import read_item_content
from opensearch_ml_stream.extensions.openai_api.protocol.request_members import HINTS, Members
from opensearch_ml_stream.extensions.openai_api.protocol.responses_items import signature_in
from opensearch_ml_stream.extensions.openai_api.protocol.responses_tools import (
    ADDITIONAL_TOOLS,
    ToolReader,
    free_form_arguments,
    function_name,
)

_NAMES = {
    "turns": "input",
    "answer_format": "text.format",
    "max_tokens": "max_output_tokens",
    "reasoning_effort": "reasoning.effort",
    "reasoning_summary": "reasoning.summary",
    "verbosity": "text.verbosity",
}
_OPTIONS: dict[str, type] = {"temperature": float, "top_p": float, "metadata": dict, "service_tier": str}
_USERS = frozenset({"user", "safety_identifier"})
_ENCRYPTED = "reasoning.encrypted_content"  # in `include`: always part of the answer here, if there is any
_ASK_NOTHING: JSONObject = {
    "background": False,
    "include": [],
    "store": False,
    "stream": False,
    "top_logprobs": 0,
    "truncation": "disabled",
}
"""Values that change nothing, since they are the defaults."""

_HINTS = ("model", "client_metadata", *HINTS)  # do not change the answer: `client_metadata` is about the client
_TOOLS = frozenset({"tools", "tool_choice"})
_OF_OUTPUT = ("id", "status")  # members of items that change nothing when they are sent back
_ROLES: dict[str, Role] = {"system": "system", "developer": "developer", "user": "user", "assistant": "assistant"}


def read_responses_request(body: JSONObject) -> Conversation:
    """Return the conversation of a body; InvalidRequest names the member that is wrong."""
    members, unknown = Members(body), dict[str, Any]()
    names = dict(_NAMES)
    tools = ToolReader(unknown)
    turns = _read_turns(members, tools, unknown)
    tool_choice = _read_tools(members, tools, unknown) if members.has_any(_TOOLS) else None
    options = members.options(_OPTIONS)
    if (limit := members.take("max_output_tokens", int)) is not None:
        options["max_tokens"] = limit
    if members.has_any(_USERS):
        _read_user(members, options, names)
    if reasoning := members.take("reasoning", dict):
        _read_reasoning(Members(reasoning, "reasoning"), options, unknown)
    text = members.take("text", dict)
    answer_format = _read_text(Members(text, "text"), options, unknown) if text else None
    parallel = members.take("parallel_tool_calls", bool)
    included = [name for name in members.take("include", list) or () if name != _ENCRYPTED]
    if included:
        unknown["include"] = included
    if of_stream := members.take("stream_options", dict):
        stream_options = Members(of_stream, "stream_options")
        stream_options.drop("include_obfuscation")  # padding that hides the lengths of tokens; none is added here
        unknown.update(stream_options.unread())
    members.drop(*_HINTS, *[name for name in body if name in _ASK_NOTHING and body[name] == _ASK_NOTHING[name]])
    return Conversation(
        turns,
        tuple(tools.functions),
        tool_choice,
        parallel,
        answer_format,
        options,
        {**unknown, **members.unread()},
        names,
        tuple(tools.left_out),
    )


def _read_turns(members: Members, tools: ToolReader, unknown: dict[str, Any]) -> tuple[Turn, ...]:
    turns: list[Turn] = []
    if instructions := members.take("instructions", str):
        turns.append(Turn("system", (Text(instructions),)))
    value = members.take_any("input")
    if isinstance(value, str):
        return (*turns, Turn("user", (Text(value),)))
    if not isinstance(value, list):
        raise InvalidRequest("input must be a string or an array of items")
    reading = _Items(turns, tools, unknown)
    for place, item in enumerate(value):
        reading.read(item, f"input[{place}]")
    reading.end_turn()
    return tuple(turns)


class _Items:
    """Reads items in order. A result gets the name of its tool from the call before it."""

    def __init__(self, turns: list[Turn], tools: ToolReader, unknown: dict[str, Any]) -> None:
        self._turns = turns
        self._tools = tools
        self._unknown = unknown
        self._names: dict[str, str] = {}  # of the tools, by the ids of their calls
        self._parts: list[Part] = []  # of the turn that is being read
        self._role: Role = "assistant"
        self._has_message = False

    def read(self, item: Any, path: str) -> None:
        members = Members(item, path)
        kind = members.take("type", str) or "message"
        members.drop(*_OF_OUTPUT)
        if kind == "message":
            self._read_message(members)
        elif kind in ("function_call", "custom_tool_call"):
            self._join("assistant", self._call(members, is_free_form=kind == "custom_tool_call"))
        elif kind in ("function_call_output", "custom_tool_call_output"):
            self._join("user", self._result(members))
        elif kind == ADDITIONAL_TOOLS:
            members.drop("role")
            self._tools.read(members.need("tools", list), members.path("tools"))
        elif kind == "reasoning":
            self._read_reasoning(members)
        elif kind == "item_reference":
            raise InvalidRequest(f"{path} cannot be a reference, as nothing is stored here; send the item itself")
        else:
            self._unknown[path] = item
            return
        self._unknown.update(members.unread())

    def end_turn(self) -> None:
        if self._parts:
            self._turns.append(Turn(self._role, tuple(self._parts)))
        self._parts, self._has_message = [], False

    def _join(self, role: Role, *parts: Part) -> None:
        """Add parts to the current turn, or to a new one if that has another role."""
        if role != self._role:
            self.end_turn()
            self._role = role
        self._parts += parts

    def _read_message(self, members: Members) -> None:
        role = _ROLES.get(members.need("role", str))
        if role is None:
            raise InvalidRequest(f"{members.path('role')} must be user, system, developer or assistant")
        parts = read_item_content(members.take_any("content"), members.path("content"), self._unknown)
        if role == "assistant":
            members.drop("phase")
            if self._has_message:
                self.end_turn()
            self._join(role, *parts)
            self._has_message = True
        else:
            self.end_turn()
            self._turns.append(Turn(role, tuple(parts)))

    def _call(self, members: Members, *, is_free_form: bool) -> Call:
        id, name = members.need("call_id", str), members.need("name", str)
        if is_free_form:
            arguments = free_form_arguments(members.take("input", str) or "")
        else:
            arguments = members.take("arguments", str) or "{}"
        call = Call(id, function_name(name, members.take("namespace", str) or ""), arguments)
        self._names[call.id] = call.name
        return call

    def _result(self, members: Members) -> Result:
        id, name = members.need("call_id", str), members.take("name", str) or ""
        parts = read_item_content(members.take_any("output"), members.path("output"), self._unknown)
        return Result(id, tuple(parts), self._names.get(id, name))

    def _read_reasoning(self, members: Members) -> None:
        summary, content = _texts(members, "summary", self._unknown), _texts(members, "content", self._unknown)
        encrypted = members.take("encrypted_content", str) or ""
        signature = signature_in(encrypted)
        reasoning = Reasoning(content or summary, signature, "" if signature else encrypted)
        if reasoning != Reasoning():  # an item of a stored response is empty
            self._join("assistant", reasoning)


def _texts(members: Members, name: str, unknown: dict[str, Any]) -> str:
    """Return the text of all parts of a member."""
    texts: list[str] = []
    for place, value in enumerate(members.take(name, list) or ()):
        part = Members(value, f"{members.path(name)}[{place}]")
        part.drop("type")
        texts.append(part.need("text", str))
        unknown.update(part.unread())
    return "\n\n".join(texts)


def _read_tools(members: Members, tools: ToolReader, unknown: dict[str, Any]) -> ToolChoice | None:
    """Read the tools, and return which of them to call."""
    tools.read(members.take("tools", list) or (), "tools")
    value = members.take_any("tool_choice")
    if value is None:
        return None
    if value in ("auto", "none", "required"):
        if value == "required" and tools.left_out and not tools.functions:
            unknown["tool_choice"] = value
        return ToolChoice(value)
    if not isinstance(value, dict):
        raise InvalidRequest("tool_choice must be auto, none, required or an object")
    choice = Members(value, "tool_choice")
    kind = choice.need("type", str)
    if kind in ("function", "custom"):
        read = ToolChoice("named", _name(choice))
    elif kind == "allowed_tools" and (allowed := _allowed(choice)):
        read = read_mode(choice)
        tools.functions = [tool for tool in tools.functions if tool.name in allowed]
    else:
        unknown["tool_choice"] = value
        return None
    unknown.update(choice.unread())
    return read


def _allowed(members: Members) -> frozenset[str]:
    """Return the names of the allowed functions."""
    path = members.path("tools")
    tools = [Members(tool, f"{path}[{place}]") for place, tool in enumerate(members.need("tools", list))]
    return frozenset(_name(tool) for tool in tools if tool.need("type", str) in ("function", "custom"))


def _name(members: Members) -> str:
    return function_name(members.need("name", str), members.take("namespace", str) or "")


def _read_user(members: Members, options: dict[str, Any], names: dict[str, str]) -> None:
    user, identifier = members.take("user", str), members.take("safety_identifier", str)
    if identifier is not None:
        names["user"] = "safety_identifier"
        options["user"] = identifier
    elif user is not None:
        options["user"] = user


def _read_reasoning(members: Members, options: dict[str, Any], unknown: dict[str, Any]) -> None:
    effort, summary = members.take("effort", str), members.take("summary", str)
    older = members.take("generate_summary", str)  # the older name of `summary`
    if effort is not None:
        if effort not in EFFORTS:
            raise InvalidRequest(f"reasoning.effort must be one of {', '.join(EFFORTS)}")
        options["reasoning_effort"] = effort
    if (summary or older) is not None:
        options["reasoning_summary"] = summary or older
    unknown.update(members.unread())


def _read_text(members: Members, options: dict[str, Any], unknown: dict[str, Any]) -> AnswerFormat | None:
    if (verbosity := members.take("verbosity", str)) is not None:
        options["verbosity"] = verbosity
    value = members.take("format", dict)
    unknown.update(members.unread())
    return read_format(value, "text.format", unknown, is_flat=True)
