"""Conversations that Hypothesis makes, each of whose words is another, so that each can be found again."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson
from hypothesis import strategies as st

from opensearch_ml_stream.connectors.conversation.conversation import (
    AnswerFormat,
    Call,
    Conversation,
    Media,
    Part,
    Reasoning,
    Result,
    Text,
    Tool,
    ToolChoice,
    Turn,
)

WORD = re.compile(r"(text|system|image|audio|file|thought|proof|call|name|argument|result|tool|schema)-(\d+)x")
_AROUND = st.sampled_from(["", " ", "\n", '"', "\\", "世界", "</s>", "\x00", "a\u2028b"])
_CACHE = {"type": "ephemeral"}


@dataclass
class _Words:
    """Draws parts of a conversation; `counts` makes each word another."""

    draw: st.DrawFn
    calls: list[Call] = field(default_factory=list)
    count: int = 0

    def word(self, kind: str) -> str:
        self.count += 1
        return f"{kind}-{self.count}x"

    def text(self, kind: str = "text") -> Text:
        cache = _CACHE if self.draw(st.integers(0, 5)) == 0 else None
        return Text(self.word(kind) + self.draw(_AROUND), cache)

    def media(self, kinds: tuple[str, ...] = ("image", "audio", "file")) -> Media:
        kind = self.draw(st.sampled_from(kinds))
        if kind == "image" and self.draw(st.booleans()):
            return Media("image", url=f"https://example.com/{self.word('image')}.png")
        if kind == "image":
            return Media("image", "image/png", data=self.word("image"))
        if kind == "audio":
            return Media("audio", "audio/wav", data=self.word("audio"))
        return Media("file", "application/pdf", data=self.word("file"), name="a.pdf")

    def said(self) -> list[Part]:
        more = range(self.draw(st.integers(0, 2)))
        return [self.text(), *(self.media() if self.draw(st.booleans()) else self.text() for _ in more)]

    def answer(self, tools: tuple[Tool, ...]) -> list[Part]:
        parts: list[Part] = []
        if self.draw(st.booleans()):
            parts.append(Reasoning(self.word("thought"), self.word("proof") if self.draw(st.booleans()) else ""))
        if self.draw(st.booleans()):
            parts.append(self.text())
        for _ in range(self.draw(st.integers(0, 2)) if tools else 0):
            arguments = orjson.dumps({"city": [self.word("argument"), self.draw(_AROUND)]}).decode()
            self.calls.append(Call(self.word("call"), self.draw(st.sampled_from(tools)).name, arguments))
            parts.append(self.calls[-1])
        return parts or [self.text()]

    def results(self) -> list[Part]:
        """The results of the calls before, in any order, and maybe a word of the user's."""
        calls = self.draw(st.permutations(self.calls))
        self.calls = []
        return [*(self.result(call) for call in calls), *([self.text()] if self.draw(st.booleans()) else [])]

    def result(self, call: Call) -> Result:
        media = [self.media(("image",))] if self.draw(st.integers(0, 3)) == 0 else []
        return Result(call.id, (self.text("result"), *media), call.name, self.draw(st.booleans()))


@st.composite
def conversations(draw: st.DrawFn) -> Conversation:
    """Conversations in the order in which all providers take one: a system, then user and model in turn."""
    words = _Words(draw)
    tools = tuple(
        Tool(words.word("name"), words.word("tool"), {"type": "object", "properties": {words.word("schema"): {}}})
        for _ in range(draw(st.integers(0, 2)))
    )
    turns = [Turn("system", (words.text("system"),))] if draw(st.booleans()) else []
    turns.append(Turn("user", tuple(words.said())))
    for _ in range(draw(st.integers(0, 3))):
        turns.append(Turn("assistant", tuple(words.answer(tools))))
        turns.append(Turn("user", tuple(words.results() if words.calls else words.said())))
    schema = {"type": "object", "properties": {words.word("schema"): {"type": "string"}}}
    choices = [None, ToolChoice("auto"), ToolChoice("none"), ToolChoice("required")]
    return Conversation(
        tuple(turns),
        tools,
        draw(st.sampled_from([*choices, *(ToolChoice("named", tool.name) for tool in tools)])) if tools else None,
        draw(st.sampled_from([None, False, True])) if tools else None,
        draw(st.sampled_from([None, AnswerFormat("json"), AnswerFormat("schema", "answer", schema=schema)])),
        draw(_OPTIONS),
    )


_OPTIONS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"max_tokens": st.just(5000)},
    optional={
        "temperature": st.sampled_from([0, 0.5, 1, 1.5]),
        "top_p": st.just(0.9),
        "top_k": st.just(7),
        "stop": st.just(["END"]),
        "seed": st.just(7),
        "n": st.sampled_from([1, 2]),
        "reasoning_effort": st.sampled_from(["none", "low", "high"]),
        "user": st.just("u1"),
    },
)


def words_of(value: Any) -> Iterator[str]:
    """The words in a value, in their order."""
    text = value if isinstance(value, str) else repr(value)
    return (found[0] for found in WORD.finditer(text))


def kind_of(word: str) -> str:
    return word.partition("-")[0]
