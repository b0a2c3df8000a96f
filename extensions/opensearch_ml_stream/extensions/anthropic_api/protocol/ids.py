"""Ids in an answer of a provider that gives none."""


def tool_id(message_id: str, index: int) -> str:
    """Return the id of a tool call of a message."""
    return f"toolu_{message_id.removeprefix('msg_')}_{index}"
