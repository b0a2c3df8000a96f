"""Tools and calls in the form that OpenAI gave them and others took over: `{"type": "function", "function": {...}}`."""

from typing import Any

from opensearch_ml_stream.connectors.conversation.conversation import Call, Conversation, Tool
from opensearch_ml_stream.connectors.conversation.dialect import Refuse

_NO_PARAMETERS = {"type": "object", "properties": {}}


def write_function(tool: Tool) -> dict[str, Any]:
    """Return a tool. One without parameters takes an empty object."""
    described = {"description": tool.description} if tool.description else {}
    parameters = _NO_PARAMETERS if tool.parameters is None else tool.parameters
    return {"type": "function", "function": {"name": tool.name, **described, "parameters": parameters}}


def write_call(call: Call) -> dict[str, Any]:
    """Return a call of an earlier answer."""
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments or "{}"}}


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
