"""Bodies of `/v1/messages` become conversations: what each member means, what is unknown, what is wrong."""

from typing import Any

import pytest

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
from opensearch_ml_stream.extensions.anthropic_api.protocol.messages_request import (
    read_conversation,
    read_counted_conversation,
)

CACHE = {"type": "ephemeral"}


def body(**members: Any) -> dict[str, Any]:
    return {"max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}], **members}


def read(**members: Any) -> Conversation:
    return read_conversation(body(**members))


def of_blocks(*blocks: Any, role: str = "user") -> Conversation:
    return read(messages=[{"role": role, "content": list(blocks)}])


def parts(*blocks: Any, role: str = "user") -> tuple[Any, ...]:
    conversation = of_blocks(*blocks, role=role)
    assert not conversation.unknown
    return conversation.turns[0].parts


def test_a_text_is_a_turn_of_its_role() -> None:
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]
    assert read(messages=messages).turns == (Turn("user", (Text("Hi"),)), Turn("assistant", (Text("Ho"),)))


@pytest.mark.parametrize("system", ["Be brief", [{"type": "text", "text": "Be brief"}]], ids=["text", "blocks"])
def test_the_system_text_is_the_first_turn(system: Any) -> None:
    assert read(system=system).turns[0] == Turn("system", (Text("Be brief"),))


@pytest.mark.parametrize("system", ["", [], None])
def test_an_empty_system_text_is_none(system: Any) -> None:
    assert [turn.role for turn in read(system=system).turns] == ["user"]


def test_a_system_message_stands_where_it_was_said() -> None:
    messages = [{"role": "user", "content": "Hi"}, {"role": "system", "content": "Be brief"}]
    assert [turn.role for turn in read(messages=messages).turns] == ["user", "system"]


def test_a_block_keeps_its_cache_control() -> None:
    assert parts({"type": "text", "text": "Hi", "cache_control": CACHE}) == (Text("Hi", CACHE),)


@pytest.mark.parametrize(
    ("source", "media"),
    [
        ({"type": "base64", "media_type": "image/png", "data": "aa"}, Media("image", "image/png", data="aa")),
        ({"type": "url", "url": "https://x/y.png"}, Media("image", url="https://x/y.png")),
        ({"type": "file", "file_id": "file_1"}, Media("image", file_id="file_1")),
    ],
    ids=["base64", "url", "file"],
)
def test_an_image_is_media_by_its_source(source: dict[str, Any], media: Media) -> None:
    assert parts({"type": "image", "source": source}) == (media,)


@pytest.mark.parametrize(
    ("source", "media"),
    [
        (
            {"type": "base64", "media_type": "application/pdf", "data": "aa"},
            Media("file", "application/pdf", data="aa", name="T"),
        ),
        ({"type": "url", "url": "https://x/y.pdf"}, Media("file", "application/pdf", url="https://x/y.pdf", name="T")),
        ({"type": "file", "file_id": "file_1"}, Media("file", file_id="file_1", name="T")),
        (
            {"type": "text", "media_type": "text/plain", "data": "abc"},
            Media("file", "text/plain", text="abc", name="T"),
        ),
        ({"type": "content", "content": "abc"}, Media("file", "text/plain", text="abc", name="T")),
        (
            {"type": "content", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            Media("file", "text/plain", text="a\nb", name="T"),
        ),
    ],
    ids=["base64", "url", "file", "text", "content", "blocks"],
)
def test_a_document_is_a_file_by_its_source(source: dict[str, Any], media: Media) -> None:
    assert parts({"type": "document", "source": source, "title": "T"}) == (media,)


def test_a_document_with_images_is_its_title_and_what_it_holds() -> None:
    image = {"type": "image", "source": {"type": "url", "url": "u"}}
    source = {"type": "content", "content": [{"type": "text", "text": "a"}, image]}
    block = {"type": "document", "source": source, "title": "T", "cache_control": CACHE}
    assert parts(block) == (Text("T"), Text("a"), Media("image", url="u", cache=CACHE))


def test_a_result_has_the_name_of_its_call() -> None:
    call = {"type": "tool_use", "id": "t1", "name": "get", "input": {"q": "Ölé"}, "caller": {"type": "direct"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "42", "is_error": True}
    messages = [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    conversation = read(messages=messages)
    assert not conversation.unknown
    assert conversation.turns[0].parts == (Call("t1", "get", '{"q":"Ölé"}'),)
    assert conversation.turns[1].parts == (Result("t1", (Text("42"),), "get", is_error=True),)


def test_a_result_may_be_empty_or_hold_blocks() -> None:
    image = {"type": "image", "source": {"type": "url", "url": "u"}}
    blocks = [{"type": "text", "text": "a"}, image]
    assert parts({"type": "tool_result", "tool_use_id": "t"}) == (Result("t", ()),)
    held = Result("t", (Text("a"), Media("image", url="u")))
    assert parts({"type": "tool_result", "tool_use_id": "t", "content": blocks}) == (held,)


def test_thinking_keeps_its_signature_and_what_is_encrypted() -> None:
    thinking = {"type": "thinking", "thinking": "Hm", "signature": "sig"}
    found = parts(thinking, {"type": "redacted_thinking", "data": "xyz"}, role="assistant")
    assert found == (Reasoning("Hm", "sig"), Reasoning(encrypted="xyz"))


@pytest.mark.parametrize(
    ("edits", "left_out"), [([], ()), ([{"type": "clear_thinking_20251015"}], ("context_management",))]
)
def test_what_is_to_be_forgotten_is_left_out(edits: list[Any], left_out: tuple[str, ...]) -> None:
    conversation = read(context_management={"edits": edits})
    assert (conversation.left_out, conversation.unknown) == (left_out, {})


def test_tools_are_those_that_the_client_runs() -> None:
    schema = {"type": "object", "properties": {"q": {"type": "string"}}}
    own = {"name": "get", "description": "Gets", "input_schema": schema, "strict": True, "cache_control": CACHE}
    search = {"type": "web_search_20250305", "name": "web_search"}
    conversation = read(tools=[own, search, {"type": "custom", "name": "put", "input_schema": {}}])
    assert conversation.tools == (Tool("get", "Gets", schema, strict=True, cache=CACHE), Tool("put", parameters={}))
    assert conversation.unknown == {"tools.1": search}


def test_what_a_tool_says_beside_is_unknown_if_it_asks_for_something() -> None:
    tool = {"name": "get", "input_schema": {}, "defer_loading": False, "input_examples": [{"q": 1}]}
    conversation = read(tools=[{**tool, "allowed_callers": ["direct"]}])
    assert conversation.unknown == {"tools.0.input_examples": [{"q": 1}]}


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({"type": "auto"}, ToolChoice("auto")),
        ({"type": "any"}, ToolChoice("required")),
        ({"type": "none"}, ToolChoice("none")),
        ({"type": "tool", "name": "get"}, ToolChoice("named", "get")),
    ],
)
def test_a_tool_choice_says_which_tools(choice: dict[str, Any], expected: ToolChoice) -> None:
    conversation = read(tool_choice=choice)
    assert (conversation.tool_choice, conversation.parallel_tool_calls) == (expected, None)


@pytest.mark.parametrize("disabled", [True, False])
def test_a_tool_choice_says_whether_several_are_called_at_once(disabled: bool) -> None:
    choice = {"type": "auto", "disable_parallel_tool_use": disabled}
    assert read(tool_choice=choice).parallel_tool_calls is not disabled


def test_options_have_their_neutral_names() -> None:
    conversation = read(
        temperature=0.5,
        top_p=0.9,
        top_k=4,
        stop_sequences=["x"],
        metadata={"user_id": "u"},
        service_tier="standard_only",
        thinking={"type": "enabled", "budget_tokens": 1024, "display": "summarized"},
        output_config={"effort": "max"},
    )
    assert conversation.unknown == {}
    assert conversation.options == {
        "max_tokens": 9,
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 4,
        "stop": ["x"],
        "user": "u",
        "service_tier": "default",
        "reasoning_tokens": 1024,
        "reasoning_summary": "auto",
        "reasoning_effort": "xhigh",
    }
    assert conversation.member("stop") == "stop_sequences"
    assert conversation.member("temperature") == "temperature"


@pytest.mark.parametrize(
    ("thinking", "options"), [({"type": "disabled"}, {"reasoning_tokens": 0}), ({"type": "adaptive"}, {})]
)
def test_thinking_is_off_or_what_the_model_finds_good(thinking: dict[str, Any], options: dict[str, Any]) -> None:
    assert read(thinking=thinking).options == {"max_tokens": 9, **options}


@pytest.mark.parametrize("is_late", [True, False], ids=["output_config", "output_format"])
def test_the_format_of_the_answer_is_a_schema(is_late: bool) -> None:
    written = {"type": "json_schema", "schema": {"type": "object"}}
    conversation = read(**({"output_config": {"format": written}} if is_late else {"output_format": written}))
    assert conversation.answer_format == AnswerFormat("schema", schema={"type": "object"})
    assert conversation.unknown == {}


def test_a_cache_control_of_the_whole_request_is_that_of_its_last_part() -> None:
    blocks = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    conversation = read(messages=[{"role": "user", "content": blocks}], cache_control=CACHE)
    assert conversation.turns[0].parts == (Text("a"), Text("b", CACHE))
    assert conversation.unknown == {}


def test_what_has_no_place_in_a_conversation_is_unknown_by_its_path() -> None:
    search = {"type": "search_result", "source": "s", "title": "t", "content": []}
    text = {"type": "text", "text": "a", "citations": [{"type": "char_location"}]}
    conversation = read(
        messages=[{"role": "user", "content": [search, text]}],
        container="c",
        mcp_servers=[],
        metadata={"user_id": "u", "team": "t"},
        thinking={"type": "between_tools"},
    )
    assert conversation.unknown == {
        "messages.0.content.0": search,
        "messages.0.content.1.citations": [{"type": "char_location"}],
        "container": "c",
        "metadata.team": "t",
        "thinking.type": "between_tools",
    }


def test_null_members_ask_for_nothing() -> None:
    conversation = read(**dict.fromkeys(("system", "temperature", "tools", "thinking", "container", "metadata")))
    assert (conversation.options, conversation.unknown) == ({"max_tokens": 9}, {})


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({"max_tokens": None}, "max_tokens: Field required"),
        ({"max_tokens": "9"}, "max_tokens: Input should be a valid integer"),
        ({"max_tokens": True}, "max_tokens: Input should be a valid integer"),
        ({"max_tokens": -1}, "max_tokens: Input should be a valid integer"),
        ({"messages": None}, "messages: at least one message is required"),
        ({"messages": []}, "messages: at least one message is required"),
        ({"messages": "Hi"}, "messages: Input should be a valid list"),
        ({"messages": ["Hi"]}, "messages.0: Input should be an object"),
        ({"messages": [{"content": "Hi"}]}, "messages.0.role: Field required"),
        ({"messages": [{"role": "tool", "content": "Hi"}]}, "messages.0.role: Input should be"),
        ({"messages": [{"role": "user"}]}, "messages.0.content: Field required"),
        ({"messages": [{"role": "user", "content": 1}]}, "messages.0.content: Input should be a string or a list"),
        ({"temperature": "hot"}, "temperature: Input should be a valid number"),
        ({"stop_sequences": [1]}, "stop_sequences.0: Input should be a valid string"),
        ({"tools": [{"input_schema": {}}]}, "tools.0.name: Field required"),
        ({"tool_choice": {"type": "some"}}, "tool_choice.type: Input should be"),
        ({"tool_choice": {"type": "tool"}}, "tool_choice.name: Field required"),
        ({"tool_choice": "any"}, "tool_choice: Input should be an object"),
        ({"thinking": {"type": "enabled"}}, "thinking.budget_tokens: Field required"),
        ({"thinking": {"type": "adaptive", "display": "all"}}, "thinking.display: Input should be"),
        ({"output_config": {"effort": "huge"}}, "output_config.effort: Input should be one of"),
        ({"output_config": {"format": {"type": "xml"}}}, "output_config.format.type: Input should be"),
        ({"output_config": {"format": {"type": "json_schema"}}}, "output_config.format.schema: Field required"),
        ({"service_tier": "fast"}, "service_tier: Input should be one of"),
        ({"system": 1}, "system: Input should be a string or a list"),
        ({"system": [{"text": "x"}]}, "system.0.type: Field required"),
    ],
)
def test_an_error_names_the_member(members: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        read(**members)
    assert raised.value.reason.startswith(reason)


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        ({"type": "text"}, "text: Field required"),
        ({"type": "image"}, "source: Field required"),
        ({"type": "image", "source": {"type": "text", "data": "x"}}, "source.type: Input should be a type of source"),
        ({"type": "image", "source": {"type": "base64", "data": "x"}}, "source.media_type: Field required"),
        ({"type": "document", "source": {"type": "content", "content": 1}}, "source.content: Input should be"),
        ({"type": "tool_use", "id": "t", "name": "n", "input": "x"}, "input: Input should be an object"),
        ({"type": "tool_result", "content": "x"}, "tool_use_id: Field required"),
        (
            {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "tool_result", "tool_use_id": "u"}]},
            "content: Input should be texts, images and documents",
        ),
    ],
)
def test_an_error_names_the_member_of_a_block(block: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        of_blocks({"type": "text", "text": "a"}, block)
    assert raised.value.reason.startswith(f"messages.0.content.1.{reason}")


def test_an_error_holds_nothing_of_the_prompt() -> None:
    with pytest.raises(InvalidRequest) as raised:
        of_blocks({"type": "text", "text": ["my secret"]})
    assert "secret" not in raised.value.reason


def test_tokens_are_counted_of_a_conversation_without_a_limit() -> None:
    assert "max_tokens" not in read_counted_conversation(body(max_tokens=None)).options
