"""How a conversation is written for Anthropic's models, on its own API, on Vertex AI and on Bedrock."""

from dataclasses import replace
from typing import Any

import pytest

from opensearch_ml_stream.connectors.conversation.conversation import (
    NONE,
    AnswerFormat,
    Call,
    Conversation,
    Media,
    Part,
    Reasoning,
    Text,
    Tool,
    ToolChoice,
    Turn,
)
from opensearch_ml_stream.connectors.conversation.dialects.anthropic_messages import (
    ANTHROPIC_MESSAGES,
    HOSTED_MESSAGES,
)
from opensearch_ml_stream.connectors.errors import InvalidRequest
from tests.conversation.rich_conversation import CACHE, MEMBERS, RICH, SCHEMA, Dropping, DroppingAll

PARAMETERS_OF_NONE = {"type": "object", "properties": {}}


def write(conversation: Conversation) -> dict[str, Any]:
    return ANTHROPIC_MESSAGES.write(conversation, Dropping())


def said(*parts: Part, **options: Any) -> Conversation:
    return Conversation((Turn("user", parts or (Text("Hi"),)),), options=options, members=MEMBERS)


def test_everything_is_written_as_the_api_documents_it() -> None:
    assert write(RICH) == {
        "system": [
            {"type": "text", "text": "Be brief."},
            {"type": "text", "text": "Know this.", "cache_control": CACHE},
            {"type": "text", "text": "Use tools."},
        ],
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What is this?"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0K"}},
                    {
                        "type": "document",
                        "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="},
                        "title": "plan.pdf",
                    },
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "A map, I think.", "signature": "c2ln"},
                    {"type": "redacted_thinking", "data": "ZW5j"},
                    {"type": "text", "text": "A map."},
                    {"type": "tool_use", "id": "call_1", "name": "weather", "input": {"city": "Zürich"}},
                    {"type": "tool_use", "id": "call_2", "name": "time", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "call_1",
                        "content": [
                            {"type": "text", "text": "Rain"},
                            {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": "/9j/"}},
                        ],
                    },
                    {"type": "tool_result", "tool_use_id": "call_2", "is_error": True},
                    {"type": "text", "text": "And now?", "cache_control": CACHE},
                ],
            },
        ],
        "tools": [
            {"name": "weather", "description": "Says the weather.", "input_schema": SCHEMA, "strict": True},
            {"name": "time", "input_schema": PARAMETERS_OF_NONE, "cache_control": CACHE},
        ],
        "tool_choice": {"type": "tool", "name": "weather"},
        "output_config": {
            "format": {"type": "json_schema", "schema": {"description": "Where it is.", **SCHEMA}},
        },
        "max_tokens": 4000,
        "temperature": 0.5,
        "top_p": 0.9,
        "stop_sequences": ["END"],
    }


@pytest.mark.parametrize(
    ("media", "source"),
    [
        (Media("image", url="https://h/a.png"), {"type": "url", "url": "https://h/a.png"}),
        (Media("file", url="https://h/a.pdf"), {"type": "url", "url": "https://h/a.pdf"}),
        (Media("file", text="words"), {"type": "text", "media_type": "text/plain", "data": "words"}),
        (Media("file", "text/csv", data="YSxi"), {"type": "text", "media_type": "text/plain", "data": "a,b"}),
        (Media("file", data="JVBE"), {"type": "base64", "media_type": "application/pdf", "data": "JVBE"}),
    ],
)
def test_media_are_images_and_documents(media: Media, source: dict[str, str]) -> None:
    [message] = write(said(media))["messages"]
    kind = "image" if media.kind == "image" else "document"
    assert message["content"] == [{"type": kind, "source": source}]


def test_a_later_system_message_stands_where_the_api_takes_it() -> None:
    turns = (Turn("user", (Text("a"),)), Turn("developer", (Text("b"),)), Turn("assistant", (Text("c"),)))
    messages = write(Conversation(turns))["messages"]
    assert [(message["role"], message["content"][0]["text"]) for message in messages] == [
        ("user", "a"), ("system", "b"), ("assistant", "c"),
    ]  # fmt: skip


@pytest.mark.parametrize("roles", ["user assistant system user", "user system user", "assistant system"])
def test_a_system_message_that_the_api_does_not_take_there_is_refused(roles: Any) -> None:
    conversation = Conversation(tuple(Turn(role, (Text(role),)) for role in roles.split()), members=MEMBERS)
    with pytest.raises(InvalidRequest, match=r"\[messages\.system\]"):
        write(conversation)
    dropped = ANTHROPIC_MESSAGES.write(conversation, Dropping(["messages.system"]))
    assert [message["role"] for message in dropped["messages"]] == [role for role in roles.split() if role != "system"]


@pytest.mark.parametrize(
    ("choice", "parallel", "expected"),
    [
        (None, None, None),
        (ToolChoice("auto"), True, {"type": "auto"}),
        (ToolChoice("required"), None, {"type": "any"}),
        (ToolChoice("none"), False, {"type": "none"}),
        (None, False, {"type": "auto", "disable_parallel_tool_use": True}),
        (ToolChoice("named", "t"), False, {"type": "tool", "name": "t", "disable_parallel_tool_use": True}),
    ],
)
def test_which_tools_are_called(choice: ToolChoice | None, parallel: bool | None, expected: object) -> None:
    conversation = replace(said(), tools=(Tool("t"),), tool_choice=choice, parallel_tool_calls=parallel)
    assert write(conversation).get("tool_choice") == expected


def test_no_choice_of_tools_is_written_where_there_are_none() -> None:
    conversation = replace(said(), tool_choice=ToolChoice("auto"), parallel_tool_calls=False)
    assert write(conversation).keys() == {"messages"}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"reasoning_effort": "none"}, {"thinking": {"type": "disabled"}}),
        ({"reasoning_tokens": 0}, {"thinking": {"type": "disabled"}}),
        ({"reasoning_effort": "minimal"}, {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}}),
        ({"reasoning_effort": "xhigh"}, {"thinking": {"type": "adaptive"}, "output_config": {"effort": "xhigh"}}),
        (
            {"reasoning_tokens": 2000, "max_tokens": 3000},
            {"thinking": {"type": "enabled", "budget_tokens": 2000}, "max_tokens": 3000},
        ),
        (
            {"reasoning_tokens": 2000},
            {"thinking": {"type": "enabled", "budget_tokens": 2000}, "max_tokens": 2000 + 4096},
        ),
        ({"reasoning_summary": "auto"}, {"thinking": {"type": "adaptive", "display": "summarized"}}),
        ({"reasoning_summary": "omitted"}, {}),
        (
            {"reasoning_effort": "low", "reasoning_summary": "omitted"},
            {"thinking": {"type": "adaptive", "display": "omitted"}, "output_config": {"effort": "low"}},
        ),
        ({"user": "u1"}, {"metadata": {"user_id": "u1"}}),
        ({"service_tier": "default"}, {"service_tier": "standard_only"}),
        ({"top_k": 5}, {"top_k": 5}),
        ({"n": 1, "presence_penalty": 0.0, "logprobs": False, "metadata": {}, "modalities": ["text"]}, {}),
    ],
)
def test_options_under_anthropics_names(options: dict[str, Any], expected: dict[str, Any]) -> None:
    body = write(said(**options))
    del body["messages"]
    assert body == expected


def test_reasoning_without_a_signature_is_another_models_and_left_out() -> None:
    assert write(said(Reasoning("Hm"), Text("Hi"))) == write(said(Text("Hi")))


def test_the_limit_that_anthropic_requires_has_a_default_that_a_template_may_replace() -> None:
    assert "max_tokens" not in write(said())
    assert ANTHROPIC_MESSAGES.defaults == HOSTED_MESSAGES.defaults == {"max_tokens": 4096}


@pytest.mark.parametrize(
    ("conversation", "member"),
    [
        (said(Media("audio", "audio/wav", data="UklG")), "messages.audio"),
        (said(Media("image", file_id="file-1")), "messages.image"),
        (said(Media("image", data="AAAA")), "messages.image"),
        (said(Media("image", "image/png", data="AAAA", detail="high")), "messages.detail"),
        (said(Media("file", "application/msword", data="AAAA")), "messages.file"),
        (said(Media("file", "text/plain", data="/////w==")), "messages.file"),
        (said(Call("c", "t", "[1]")), "messages.arguments"),
        (said(Call("c", "t", "{")), "messages.arguments"),
        (Conversation((Turn("user", (Text("a"),), name="Ann"),), members={"turns": "input"}), "input.name"),
        (Conversation((Turn("system", (Media("image", url="https://h/"),)),), members=MEMBERS), "messages.system"),
        (said(temperature=1.5), "temperature"),
        (said(seed=1), "seed"),
        (said(n=2), "n"),
        (said(logprobs=True), "logprobs"),
        (said(max_tokens=1000, reasoning_tokens=1000), "reasoning_tokens"),
        (said(reasoning_effort="huge"), "reasoning_effort"),
        (said(service_tier="flex"), "service_tier"),
        (replace(said(), answer_format=AnswerFormat("json")), "response_format"),
        (replace(said(), unknown={"web_search_options.filters": {}}), "web_search_options.filters"),
    ],
)
def test_what_cannot_be_said_is_refused_by_the_clients_name(conversation: Conversation, member: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        write(conversation)
    assert refused.value.reason.startswith(f"[{member}]: ")
    dropping = DroppingAll()
    assert "messages" in ANTHROPIC_MESSAGES.write(conversation, dropping)
    assert dropping.refused == [member]


def test_what_is_dropped_is_left_out_and_nothing_else() -> None:
    conversation = said(Text("a"), Media("audio", data="AA"), Text("b"), temperature=1.5, top_p=0.5, seed=1)
    body = ANTHROPIC_MESSAGES.write(conversation, Dropping(["messages.audio", "temperature", "seed"]))
    content = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert body == {"messages": [{"role": "user", "content": content}], "top_p": 0.5}


def test_an_empty_text_which_the_api_refuses_is_not_written() -> None:
    turns = (Turn("user", (Text("a"), Text(""))), Turn("assistant", (Text(""), Call("c", "t", "{}"))))
    assert [len(message["content"]) for message in write(Conversation(turns))["messages"]] == [1, 1]


def test_other_clouds_fetch_nothing_and_have_service_tiers_of_their_own() -> None:
    dialect = HOSTED_MESSAGES
    assert dialect.write(RICH, Dropping()) == write(RICH)
    with pytest.raises(InvalidRequest, match=r"\[messages\.image\]: this provider does not fetch"):
        dialect.write(said(Media("image", url="https://h/a.png")), Dropping())
    with pytest.raises(InvalidRequest, match=r"\[service_tier\]"):
        dialect.write(said(service_tier="flex"), Dropping())
    body = {"messages": [], "service_tier": "auto", "context_management": NONE}
    with pytest.raises(InvalidRequest, match=r"\[service_tier\]"):
        dialect.adapt(dict(body), Dropping())
    assert dialect.adapt(dict(body), Dropping(["service_tier"])) == {"messages": [], "context_management": NONE}
