"""Tools, calls and their results in the form that OpenAI gave them and others took over."""

from collections.abc import Callable, Mapping
from typing import Any

from opensearch_ml_stream.connectors.conversation.conversation import Call, Conversation, Part, Result, Tool
from opensearch_ml_stream.connectors.conversation.dialect import Refuse
from opensearch_ml_stream.connectors.conversation.dialects.written_parts import SYSTEM_ROLES, messages_of, result_text


def write_function(tool: Tool) -> dict[str, Any]:
    """Return a tool. One without parameters takes an empty object."""
    described = {"description": tool.description} if tool.description else {}
    return {"type": "function", "function": {"name": tool.name, **described, "parameters": tool.schema}}


def write_call(call: Call) -> dict[str, Any]:
    """Return a call of an earlier answer."""
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments or "{}"}}


Content = Callable[[tuple[Part, ...], Conversation, Refuse], str | list[dict[str, Any]]]
"""Writes what stands between the results of a turn as the content of a message."""


def write_messages(
    conversation: Conversation, refuse: Refuse, content: Content, names: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """Return the messages of a conversation, each result as one of its own; `names` are as of `write_result`.

    Developers speak as the system, and reasoning is left out.
    """
    messages: list[dict[str, Any]] = []
    for turn in conversation.turns:
        for said in messages_of(turn):
            if isinstance(said, Result):
                messages.append(write_result(said, conversation, refuse, names))
                continue
            role = "system" if turn.role in SYSTEM_ROLES else turn.role
            messages.append({"role": role, "content": content(said, conversation, refuse)})
            if calls := [write_call(part) for part in said if isinstance(part, Call)]:
                messages[-1]["tool_calls"] = calls
    return messages


def write_result(
    result: Result, conversation: Conversation, refuse: Refuse, names: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return the message of a result; `names` are those of tools, by the ids of calls, None where it has none."""
    name = None if names is None else result.name or names.get(result.id)
    named = {"name": name} if name else {}
    content = result_text(result, conversation, refuse)
    return {"role": "tool", "tool_call_id": result.id, **named, "content": content}


def callable_tools(conversation: Conversation) -> tuple[Tool, ...]:
    """Return the tools that may be called: none where none is to be, for a provider that cannot be told so."""
    choice = conversation.tool_choice
    return () if choice is not None and choice.mode == "none" else conversation.tools


def refuse_one_at_a_time(conversation: Conversation, refuse: Refuse) -> None:
    """Refuse the wish for no more than one call in an answer."""
    if conversation.tools and conversation.parallel_tool_calls is False:
        refuse(conversation.member("parallel_tool_calls"), "the provider decides how many tools it calls at once")


def refuse_strict(conversation: Conversation, refuse: Refuse) -> None:
    """Refuse the wish for arguments that keep to the schema in any case."""
    if any(tool.strict for tool in conversation.tools):
        refuse(f"{conversation.member('tools')}.strict", "the provider does not hold arguments to their schema")


def refuse_forced_calls(conversation: Conversation, refuse: Refuse) -> None:
    """Refuse the wish for a call in any case."""
    choice = conversation.tool_choice
    if choice is not None and choice.mode in ("required", "named"):
        refuse(conversation.member("tool_choice"), "the provider cannot be made to call a tool")
