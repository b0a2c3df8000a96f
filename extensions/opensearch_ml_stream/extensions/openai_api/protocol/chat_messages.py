"""The messages of a chat as the turns of a conversation."""

from typing import Any

from opensearch_ml_stream.connectors.conversation.conversation import (
    Call,
    Media,
    Part,
    Reasoning,
    Result,
    Role,
    Text,
    Turn,
)
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.extensions.openai_api.protocol.content_parts import read_content
from opensearch_ml_stream.extensions.openai_api.protocol.members import Members

REASONING, SIGNATURE = "reasoning_content", "reasoning_signature"
"""Members of an assistant's message, in and out, that OpenAI's API itself does not have."""

_PLAIN_ROLES: dict[str, Role] = {"system": "system", "developer": "developer", "user": "user"}
_OF_ANSWERS = ("annotations", "parsed")  # members of a response's message that ask for nothing when they are sent back


def read_messages(messages: list[Any], unknown: dict[str, Any]) -> tuple[Turn, ...]:
    """Return the turns; InvalidRequest names the member that is wrong. What is not known here goes to `unknown`."""
    reading = _Messages(unknown)
    for place, message in enumerate(messages):
        reading.read(Members(message, f"messages[{place}]"), place)
    reading.end_results()
    return tuple(reading.turns)


class _Messages:
    """Reads messages in order. Results get the names of the tools from the calls before them."""

    def __init__(self, unknown: dict[str, Any]) -> None:
        self.turns: list[Turn] = []
        self._unknown = unknown
        self._names: dict[str, str] = {}  # of the tools, by the ids of their calls
        self._function_id = ""  # of the last call in the form before there were tools, which has none
        self._results: list[Part] = []  # of one answer's calls, which are one turn

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
        if (sound := members.take("audio", dict)) is not None:  # which the provider has kept
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
