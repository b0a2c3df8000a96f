"""How a conversation is written for Bedrock's Converse."""

from dataclasses import replace
from typing import Any

import orjson
import pytest

from opensearch_ml_stream.connectors.conversation.conversation import (
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
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.providers.bedrock_converse import CLAUDE_CONVERSE, CONVERSE
from tests.conversation.rich_conversation import MEMBERS, RICH, SCHEMA, Dropping, DroppingAll

POINT = {"cachePoint": {"type": "default"}}


def said(*parts: Part, **options: Any) -> Conversation:
    return Conversation((Turn("user", parts or (Text("Hi"),)),), options=options, members=MEMBERS)


def content(*parts: Part) -> list[dict[str, Any]]:
    [message] = CONVERSE.write(said(*parts), Dropping())["messages"]
    blocks: list[dict[str, Any]] = message["content"]
    return blocks


@pytest.mark.parametrize("dialect", [CONVERSE, CLAUDE_CONVERSE])
def test_everything_is_written_as_the_api_documents_it(dialect: Any) -> None:
    body = dialect.write(RICH, Dropping())
    schema = body["outputConfig"]["textFormat"]["structure"]["jsonSchema"].pop("schema")
    assert orjson.loads(schema) == SCHEMA
    assert body == {
        "system": [{"text": "Be brief."}, {"text": "Know this."}, POINT, {"text": "Use tools."}],
        "messages": [
            {
                "role": "user",
                "content": [
                    {"text": "What is this?"},
                    {"image": {"format": "png", "source": {"bytes": "iVBORw0K"}}},
                    {"document": {"format": "pdf", "name": "plan pdf", "source": {"bytes": "JVBERi0="}}},
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"reasoningContent": {"reasoningText": {"text": "A map, I think.", "signature": "c2ln"}}},
                    {"reasoningContent": {"redactedContent": "ZW5j"}},
                    {"text": "A map."},
                    {"toolUse": {"toolUseId": "call_1", "name": "weather", "input": {"city": "Zürich"}}},
                    {"toolUse": {"toolUseId": "call_2", "name": "time", "input": {}}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "toolResult": {
                            "toolUseId": "call_1",
                            "content": [{"text": "Rain"}, {"image": {"format": "jpeg", "source": {"bytes": "/9j/"}}}],
                        }
                    },
                    {"toolResult": {"toolUseId": "call_2", "content": [], "status": "error"}},
                    {"text": "And now?"},
                    POINT,
                ],
            },
        ],
        "inferenceConfig": {"maxTokens": 4000, "temperature": 0.5, "topP": 0.9, "stopSequences": ["END"]},
        "toolConfig": {
            "tools": [
                {
                    "toolSpec": {
                        "name": "weather",
                        "description": "Says the weather.",
                        "inputSchema": {"json": SCHEMA},
                        "strict": True,
                    }
                },
                {"toolSpec": {"name": "time", "inputSchema": {"json": {"type": "object", "properties": {}}}}},
                POINT,
            ],
            "toolChoice": {"tool": {"name": "weather"}},
        },
        "outputConfig": {
            "textFormat": {
                "type": "json_schema",
                "structure": {"jsonSchema": {"name": "place", "description": "Where it is."}},
            }
        },
    }


def test_documents_have_names_that_bedrock_takes() -> None:
    blocks = content(
        Media("file", text="wörds"),
        Media("file", "text/markdown", data="IyBh", name="../a__b (1).md"),
        Media("file", url="s3://b/k.pdf"),
    )
    assert [block["document"] for block in blocks] == [
        {"format": "txt", "name": "document 1", "source": {"bytes": "d8O2cmRz"}},
        {"format": "md", "name": "a b (1) md", "source": {"bytes": "IyBh"}},
        {"format": "pdf", "name": "document 3", "source": {"s3Location": {"uri": "s3://b/k.pdf"}}},
    ]


def test_a_document_whose_text_cannot_be_encoded_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="half of a surrogate pair"):
        content(Media("file", "text/plain", text="\ud83d"))


def test_a_schema_may_hold_numbers_of_any_size() -> None:
    conversation = replace(said(), answer_format=AnswerFormat("schema", schema={"maximum": 2**70}))
    written = CONVERSE.write(conversation, Dropping())["outputConfig"]["textFormat"]["structure"]["jsonSchema"]
    assert written["schema"] == f'{{"maximum": {2**70}}}'


def test_a_cache_point_keeps_the_time_that_is_asked_for() -> None:
    ephemeral = {"type": "ephemeral", "ttl": "1h"}
    assert content(Text("a", cache=ephemeral)) == [{"text": "a"}, {"cachePoint": {"type": "default", "ttl": "1h"}}]


def test_reasoning_without_a_signature_is_that_of_models_which_sign_none() -> None:
    assert content(Reasoning("Hm")) == [{"reasoningContent": {"reasoningText": {"text": "Hm"}}}]
    [message] = CLAUDE_CONVERSE.write(said(Reasoning("Hm"), Text("Hi")), Dropping())["messages"]
    assert message["content"] == [{"text": "Hi"}]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (ToolChoice("auto"), {"auto": {}}),
        (ToolChoice("required"), {"any": {}}),
        (ToolChoice("named", "t"), {"tool": {"name": "t"}}),
        (None, None),
    ],
)
def test_which_tools_are_called(choice: ToolChoice | None, expected: object) -> None:
    conversation = replace(said(), tools=(Tool("t"),), tool_choice=choice)
    assert CONVERSE.write(conversation, Dropping())["toolConfig"].get("toolChoice") == expected


def test_tools_none_of_which_may_be_called_are_left_out_unless_one_was_called() -> None:
    forbidden = replace(said(), tools=(Tool("t"),), tool_choice=ToolChoice("none"))
    assert "toolConfig" not in CONVERSE.write(forbidden, Dropping())
    called = replace(forbidden, turns=(*forbidden.turns, Turn("assistant", (Call("c", "t", "{}"),))))
    with pytest.raises(InvalidRequest, match=r"\[tool_choice\]"):
        CONVERSE.write(called, Dropping())


def test_what_only_anthropics_models_take_is_written_for_them_alone() -> None:
    conversation = said(top_k=5, reasoning_effort="high")
    assert CLAUDE_CONVERSE.write(conversation, Dropping())["additionalModelRequestFields"] == {
        "top_k": 5, "thinking": {"type": "adaptive"}, "output_config": {"effort": "high"},
    }  # fmt: skip
    budget = CLAUDE_CONVERSE.write(said(reasoning_tokens=2000), Dropping())
    assert budget["additionalModelRequestFields"] == {"thinking": {"type": "enabled", "budget_tokens": 2000}}
    assert budget["inferenceConfig"] == {"maxTokens": 2000 + 4096}
    dropping = DroppingAll()
    assert CONVERSE.write(conversation, dropping).keys() == {"messages"}
    assert dropping.refused == ["top_k", "reasoning_effort"]


def test_what_is_said_about_the_call() -> None:
    body = CONVERSE.write(said(metadata={"team": "a"}, service_tier="flex"), Dropping())
    assert body["requestMetadata"] == {"team": "a"}
    assert body["serviceTier"] == {"type": "flex"}
    assert CONVERSE.write(said(service_tier="auto"), Dropping()).keys() == {"messages"}


@pytest.mark.parametrize(
    ("conversation", "member"),
    [
        (said(Media("audio", "audio/wav", data="UklG")), "messages.audio"),
        (said(Media("image", url="https://h/a.png")), "messages.image"),
        (said(Media("image", "image/tiff", data="AAAA")), "messages.image"),
        (said(Media("file", "application/zip", data="AAAA")), "messages.file"),
        (said(Media("file", file_id="f")), "messages.file"),
        (said(Media("image", "image/png", data="AA", detail="low")), "messages.detail"),
        (said(Call("c", "t", "3")), "messages.arguments"),
        (Conversation((*said().turns, Turn("system", (Text("b"),))), members=MEMBERS), "messages.system"),
        (Conversation((Turn("user", (Text("a"),), name="Ann"),), members=MEMBERS), "messages.name"),
        (replace(said(), tools=(Tool("t"),), parallel_tool_calls=False), "parallel_tool_calls"),
        (replace(said(), answer_format=AnswerFormat("json")), "response_format"),
        (replace(said(), unknown={"store": True}), "store"),
        (said(temperature=1.1), "temperature"),
        (said(user="u"), "user"),
        (said(seed=4), "seed"),
        (said(metadata={"a": 1}), "metadata"),
        (said(service_tier="scale"), "service_tier"),
    ],
)
def test_what_cannot_be_said_is_refused_by_the_clients_name(conversation: Conversation, member: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        CONVERSE.write(conversation, Dropping())
    assert refused.value.reason.startswith(f"[{member}]: ")
    dropping = DroppingAll()
    assert "messages" in CONVERSE.write(conversation, dropping)
    assert dropping.refused == [member]
