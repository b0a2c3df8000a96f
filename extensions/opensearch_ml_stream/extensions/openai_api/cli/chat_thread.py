"""A thread: the questions and answers so far, as messages of OpenAI's API."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from opensearch_ml_stream.extensions.openai_api.protocol.envelope import REASONING, SIGNATURE

Message = Mapping[str, Any]


@dataclass(slots=True)
class ChatThread:
    """The messages of a conversation with a model, and the options of its requests."""

    model: str
    system: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)

    def ask(self, text: str, attached: Sequence[Message] = ()) -> None:
        """Add a question. It replaces the one before, if that has no answer."""
        while self.messages and self.messages[-1]["role"] == "user":
            self.messages.pop()
        content = [*attached, *([{"type": "text", "text": text}] if text else [])] if attached else text
        self.messages.append({"role": "user", "content": content})

    def keep(self, answer: Message) -> None:
        """Add an answer, or the part that came, unless it has neither text nor tool calls."""
        if answer["content"] or "tool_calls" in answer:
            self.messages.append(answer)

    def drop_answer(self) -> bool:
        """Remove the last answer, so that it can be asked for again; False if nothing was asked."""
        if self.calls_without_result:
            while self.messages[-1]["role"] == "tool":
                self.messages.pop()
        if self.messages and self.messages[-1]["role"] == "assistant":
            self.messages.pop()
        return bool(self.messages)

    @property
    def calls_without_result(self) -> Sequence[Message]:
        """The tool calls of the last answer that have no result yet."""
        results = set[Any]()
        for message in reversed(self.messages):
            if message["role"] != "tool":
                return [call for call in message.get("tool_calls", ()) if call["id"] not in results]
            results.add(message["tool_call_id"])
        return ()

    def add_result(self, result: str) -> None:
        """Add the result of the first tool call without one."""
        call = self.calls_without_result[0]
        self.messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})

    def request(self, *, wants_usage: bool) -> Mapping[str, Any]:
        """Return the body of the request for the next answer."""
        return {
            "model": self.model,
            "messages": [_as_sent(message) for message in self.with_system()],
            "stream": True,
            **({"stream_options": {"include_usage": True}} if wants_usage else {}),
            **self.options,
        }

    def with_system(self) -> Iterator[Message]:
        """Yield the messages, that of the system first."""
        if self.system:
            yield {"role": "system", "content": self.system}
        yield from self.messages


def _as_sent(message: Message) -> Message:
    # Reasoning is only sent back with a signature; some providers without signatures refuse it.
    return message if SIGNATURE in message else {name: value for name, value in message.items() if name != REASONING}


_TITLES = {"system": "System", "user": "Question", "assistant": "Answer", "tool": "Result of a tool"}


def as_json(thread: ChatThread) -> str:
    """Return the model, the options and the messages in the form of a request."""
    body = {"model": thread.model, **thread.options, "messages": list(thread.with_system())}
    return orjson.dumps(body, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()


def as_markdown(thread: ChatThread) -> str:
    """Return the messages as Markdown; files are shown by their names."""
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
