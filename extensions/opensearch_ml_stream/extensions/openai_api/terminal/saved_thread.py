"""A thread as a file: Markdown to read, or JSON with all that is needed to go on."""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from opensearch_ml_stream.extensions.openai_api.protocol.chat_messages import REASONING
from opensearch_ml_stream.extensions.openai_api.terminal.chat_thread import ChatThread, Message

_TITLES = {"system": "System", "user": "Question", "assistant": "Answer", "tool": "Result of a tool"}


def as_json(thread: ChatThread) -> str:
    """Return the model, the options and the messages, as a request has them."""
    body = {"model": thread.model, **thread.options, "messages": list(thread.with_system())}
    return orjson.dumps(body, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()


def as_markdown(thread: ChatThread) -> str:
    """Return the messages below each other; of files their names alone."""
    return "\n\n".join([f"# {thread.model}", *map(_message, thread.with_system())]) + "\n"


def _message(message: Message) -> str:
    return "\n\n".join([f"## {_TITLES[message['role']]}", *_paragraphs(message)])


def _paragraphs(message: Message) -> Iterator[str]:
    if reasoning := message.get(REASONING):
        yield "\n".join(f"> {line}" for line in reasoning.strip().split("\n"))
    content = message["content"]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content or ()
    yield from map(_part, parts)
    for call in message.get("tool_calls", ()):
        yield f"Tool call: `{call['function']['name']}({call['function']['arguments']})`"


def _part(part: Mapping[str, Any]) -> str:
    if part["type"] == "text":
        return str(part["text"]).strip()
    return f"(file {part['file']['filename']})" if part["type"] == "file" else "(image)"
