"""A conversation with everything in it that both Anthropic's Messages and Bedrock's Converse can say."""

from collections.abc import Collection
from dataclasses import dataclass, field

from opensearch_ml_stream.connectors.conversation.conversation import (
    AnswerFormat,
    Call,
    Conversation,
    Media,
    Reasoning,
    Result,
    Text,
    Tool,
    ToolChoice,
    Turn,
)
from opensearch_ml_stream.connectors.errors import InvalidRequest

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
CACHE = {"type": "ephemeral"}
MEMBERS = {"turns": "messages", "answer_format": "response_format", "max_tokens": "max_completion_tokens"}

RICH = Conversation(
    turns=(
        Turn("system", (Text("Be brief."), Text("Know this.", cache=CACHE))),
        Turn("developer", (Text("Use tools."),)),
        Turn("user", (Text("What is this?"), Media("image", "image/png", data="iVBORw0K"))),
        Turn("user", (Media("file", "application/pdf", data="JVBERi0=", name="plan.pdf"),)),
        Turn(
            "assistant",
            (
                Reasoning("A map, I think.", signature="c2ln"),
                Reasoning(encrypted="ZW5j"),
                Text("A map."),
                Call("call_1", "weather", '{"city": "Zürich"}'),
                Call("call_2", "time", ""),
            ),
        ),
        Turn("user", (Text("And now?", cache=CACHE),)),
        Turn("user", (Result("call_1", (Text("Rain"), Media("image", "image/jpeg", data="/9j/"))),)),
        Turn("user", (Result("call_2", (), is_error=True),)),
    ),
    tools=(
        Tool("weather", "Says the weather.", SCHEMA, strict=True),
        Tool("time", cache=CACHE),
    ),
    tool_choice=ToolChoice("named", "weather"),
    answer_format=AnswerFormat("schema", "place", "Where it is.", SCHEMA),
    options={"max_tokens": 4000, "temperature": 0.5, "top_p": 0.9, "stop": ["END"], "n": 1, "frequency_penalty": 0},
    members=MEMBERS,
)


@dataclass
class Dropping:
    """Refuses members as the core does, but for those that may be dropped, and keeps what was refused."""

    drop: Collection[str] = ()
    refused: list[str] = field(default_factory=list)

    def __call__(self, member: str, why: str = "") -> None:
        self.refused.append(member)
        if member not in self.drop:
            raise InvalidRequest(f"[{member}]: {why}")


class DroppingAll(Dropping):
    """Drops whatever is refused."""

    def __call__(self, member: str, why: str = "") -> None:
        self.refused.append(member)
