"""Requests of conversations: by a dialect, as the client sent them, or by the template's own parameters."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from opensearch_ml_stream.connectors.conversation.conversation import (
    AnswerFormat,
    Call,
    Conversation,
    Media,
    Text,
    Tool,
    ToolChoice,
    Turn,
)
from opensearch_ml_stream.connectors.conversation.conversation_request import ConversationTemplate
from opensearch_ml_stream.connectors.conversation.dialect import ClientRequest, Dialect, Refuse
from opensearch_ml_stream.connectors.documents import PREDICT, Action, connector_document, read_connector
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.known_providers import SHIPPED
from opensearch_ml_stream.connectors.predict.model_inputs import ChatForm, ModelInputs, find_model_inputs
from opensearch_ml_stream.connectors.providers.ollama import DIALECT as OLLAMA
from opensearch_ml_stream.connectors.rendering.compiled_action import CompiledAction, ProviderRequest
from opensearch_ml_stream.connectors.rendering.template import ConnectorParameters
from opensearch_ml_stream.connectors.stream_spec import Enable, StreamSpec

BLUEPRINTS = {
    path.stem: json.loads(path.read_text("utf-8"))["connector"]
    for path in sorted((Path(__file__).parents[3] / "blueprints").glob("*.json"))
}
IMAGE, CALL = Media("image", url="u"), Call("1", "f", "{}")
HELLO = Conversation((Turn("user", (Text("Hello"),)),))
CHAT = Conversation((
    Turn("system", (Text("Be kind"),)),
    Turn("user", (Text("Hello"),)),
    Turn("assistant", (Text("Hi"),)),
    Turn("user", (Text("Bye"), Text("now"))),
))  # fmt: skip
STREAMED: StreamSpec = SHIPPED.presets["openai/v1/chat/completions"]


def write(conversation: Conversation, refuse: Refuse) -> dict[str, Any]:
    """Write OpenAI's form, with options under their own names; `top_k` cannot be said."""
    if "top_k" in conversation.options:
        refuse(conversation.member("top_k"), "it has no such member")
    texts = [(turn.role, [part.text for part in turn.parts if isinstance(part, Text)]) for turn in conversation.turns]
    options = {name: value for name, value in conversation.options.items() if name != "top_k"}
    return {"messages": [{"role": role, "content": "\n".join(text)} for role, text in texts], **options}


CHAT_DIALECT = Dialect("spoken", write, ("messages",))


def action(body: str | None, parameters: Mapping[str, str] | None = None, method: str = "POST") -> CompiledAction:
    url = "https://h/${parameters.version:-v1}/chat"
    own = ConnectorParameters.compile(parameters or {})
    return CompiledAction.compile(Action(PREDICT, method, url, request_body=body), own, {})


def template(compiled: CompiledAction) -> ConversationTemplate:
    return ConversationTemplate.compile(compiled, find_model_inputs(compiled.action, compiled.parameters))


def asked(conversation: Conversation, dialect: str = "another", **body: Any) -> ClientRequest:
    return ClientRequest(dialect, body, lambda body: conversation)


def rendered(
    compiled: CompiledAction,
    client: ClientRequest,
    dialect: Dialect | None = None,
    drop: tuple[str, ...] = (),
    stream: StreamSpec | None = None,
) -> ProviderRequest:
    return template(compiled).request(client, dialect, drop).render(compiled, stream)


def sent(request: ProviderRequest) -> Any:
    return json.loads(request.body.decode(request.charset))


def test_a_dialect_writes_the_body_and_the_template_has_its_say() -> None:
    compiled = action('{"model":"m","messages":${parameters.messages},"temperature":0}', {"version": "v2"})
    conversation = Conversation(HELLO.turns, options={"temperature": 1, "seed": 3})
    request = rendered(compiled, asked(conversation), CHAT_DIALECT)
    assert (request.method, request.url) == ("POST", "https://h/v2/chat")
    assert request.headers == {"Content-Type": "application/json"}
    assert sent(request) == {
        "model": "m",
        "messages": [{"role": "user", "content": "Hello"}],
        "temperature": 0,
        "seed": 3,
    }


def test_what_the_dialect_cannot_say_is_refused_by_the_clients_name_or_dropped_by_it() -> None:
    compiled = action('{"messages":${parameters.messages}}')
    conversation = Conversation(HELLO.turns, options={"top_k": 4}, members={"top_k": "generation.top_k"})
    reason = (
        r"^\[generation.top_k\] cannot be sent to this model's provider \(spoken\): it has no such member. "
        "Leave it out, or let the model's _sidecar.drop_params name it$"
    )
    with pytest.raises(InvalidRequest, match=reason):
        rendered(compiled, asked(conversation), CHAT_DIALECT)
    dropped = rendered(compiled, asked(conversation), CHAT_DIALECT, ("generation.top_k",))
    assert sent(dropped).keys() == {"messages"}


def test_a_client_of_the_same_dialect_is_not_read_and_what_is_unknown_in_it_goes_on() -> None:
    def read(body: Mapping[str, Any]) -> Conversation:
        raise AssertionError

    body = {
        "messages": [{"role": "user", "content": "Hello", "name": "ann"}, {"role": "user", "content": "Bye"}],
        "brand_new": {"a": [1]},
        "service_tier": "flex",
    }
    compiled = action('{"model":"m","messages":[{"role":"system","content":"Be kind"},${parameters.messages}]}')
    client = ClientRequest("spoken", body, read)
    request = rendered(compiled, client, CHAT_DIALECT, ("service_tier", "messages[].name", "messages", "absent.x"))
    kind = {"role": "system", "content": "Be kind"}
    messages = [kind, {"role": "user", "content": "Hello"}, {"role": "user", "content": "Bye"}]
    assert sent(request) == {"model": "m", "messages": messages, "brand_new": {"a": [1]}}
    assert body["service_tier"] == "flex"


def test_a_dialect_adapts_a_copy_of_what_its_client_sent() -> None:
    def adapt(body: dict[str, Any], refuse: Refuse) -> dict[str, Any]:
        body["messages"] = [{"role": "user", "content": "changed"}]
        return body

    body: dict[str, Any] = {"messages": [{"role": "user", "content": "Hello"}]}
    client = ClientRequest("spoken", body, lambda body: HELLO)
    dialect = Dialect("spoken", write, ("messages",), adapt)
    request = rendered(action('{"messages":${parameters.messages}}'), client, dialect)
    assert sent(request)["messages"] == [{"role": "user", "content": "changed"}]
    assert body["messages"][0]["content"] == "Hello"


@pytest.mark.parametrize("dialect", [CHAT_DIALECT, None])
def test_streaming_is_turned_on_in_body_and_head_or_not(dialect: Dialect | None) -> None:
    enable = Enable({"stream": True, "o": {"u": 1}}, {"p": {"i": 2}}, ("q",), (("/chat", "/chat_stream"),))
    spec = StreamSpec("x", enable, STREAMED.framing, STREAMED.reader)
    compiled = action('{"messages":${parameters.messages},"p":{"j":1},"q":1,"stream":false}')
    messages = [{"role": "user", "content": "Hello"}]
    on = rendered(compiled, asked(HELLO), dialect, stream=spec)
    assert sent(on) == {"messages": messages, "p": {"j": 1, "i": 2}, "stream": True, "o": {"u": 1}}
    assert on.url == "https://h/v1/chat_stream"
    off = rendered(compiled, asked(HELLO), dialect)
    assert sent(off) == {"messages": messages, "p": {"j": 1}, "q": 1, "stream": False}
    assert off.url == "https://h/v1/chat"


def test_a_body_whose_inner_member_is_no_object_cannot_be_streamed() -> None:
    spec = StreamSpec("x", Enable(inner_body={"p": {"i": 2}}), STREAMED.framing, STREAMED.reader)
    with pytest.raises(InvalidRequest, match=r"The member \[p\] of the request body must be an object"):
        rendered(action('{"messages":${parameters.messages},"p":1}'), asked(HELLO), CHAT_DIALECT, stream=spec)


def test_a_whole_answer_is_asked_for_where_the_template_asks_for_a_stream() -> None:
    compiled = action('{"messages":${parameters.messages},"stream":true,"stream_options":{"include_usage":true}}')
    request = rendered(compiled, asked(HELLO), CHAT_DIALECT)
    assert sent(request) == {"messages": [{"role": "user", "content": "Hello"}], "stream": False}


def test_a_provider_that_streams_unasked_is_asked_for_a_whole_answer() -> None:
    compiled = action('{"model":"m","messages":${parameters.messages}}')
    assert sent(rendered(compiled, asked(HELLO), OLLAMA))["stream"] is False
    assert sent(rendered(compiled, asked(HELLO), OLLAMA, stream=STREAMED))["stream"] is True


def test_the_connectors_charset_and_its_edits_of_bodies_hold_for_written_ones() -> None:
    processors = '[{"type":"remove_jsonpath","path":"$.secret"}]'
    parameters = {"charset": "ISO-8859-1", "input_processors": processors}
    conversation = Conversation((Turn("user", (Text("é"),)),), options={"seed": 1})
    compiled = action('{"messages":${parameters.messages},"secret":1}', parameters)
    request = rendered(compiled, asked(conversation), CHAT_DIALECT)
    assert b"\xe9" in request.body
    assert sent(request).keys() == {"messages", "seed"}


def test_words_around_the_place_of_the_conversation_leave_the_templates_own_parameters() -> None:
    compiled = action('{"messages":[{"role":"user","content":"Politely: ${parameters.inputs}"}]}')
    request = rendered(compiled, asked(HELLO), CHAT_DIALECT)
    assert sent(request) == {"messages": [{"role": "user", "content": "Politely: Hello"}]}
    with pytest.raises(InvalidRequest, match=r"^\[messages\] .* of its own at \[messages\], which cannot be told"):
        rendered(compiled, asked(CHAT), CHAT_DIALECT)


def test_a_place_for_a_text_where_the_dialect_has_none_leaves_the_templates_own_parameters() -> None:
    compiled = action('{"query":"${parameters.inputs}"}')
    assert sent(rendered(compiled, asked(HELLO), CHAT_DIALECT)) == {"query": "Hello"}
    with pytest.raises(InvalidRequest, match=r"^\[messages\] cannot be sent .* needs the parameter \[inputs\]"):
        rendered(compiled, asked(CHAT), CHAT_DIALECT)
    with pytest.raises(InvalidRequest, match=r"^The connector's request_body needs the parameter \[x\]"):
        rendered(action('{"query":"${parameters.x}"}'), asked(HELLO), CHAT_DIALECT)


@pytest.mark.parametrize(
    ("body", "parameters"),
    [
        ('{"p":"${parameters.inputs}"}', {}),
        ('{"p":"[INST] ${parameters.prompt} [/INST]"}', {}),
        ('{"p":"${parameters.prompt}"}', {"prompt": "<s>${parameters.inputs}</s>"}),
        ('{"p":${parameters.messages}}', {"messages": '[{"role":"user","content":"${parameters.inputs}"}]'}),
        ('{"p":${parameters.messages}}', {}),
    ],
)
def test_a_text_fills_the_templates_own_parameter(body: str, parameters: dict[str, str]) -> None:
    request = rendered(action(body, parameters), asked(HELLO))
    assert "Hello" in json.dumps(sent(request)["p"])


def test_a_chat_of_texts_fills_messages_with_its_system_turns() -> None:
    own = '[{"role":"user","content":[{"text":"${parameters.inputs}"}]}]'
    said = [("system", "Be kind"), ("user", "Hello"), ("assistant", "Hi"), ("user", "Bye\n\nnow")]
    plain = rendered(action('{"m":${parameters.messages}}'), asked(CHAT))
    assert sent(plain)["m"] == [{"role": role, "content": text} for role, text in said]
    formed = rendered(action('{"m":${parameters.messages}}', {"messages": own}), asked(CHAT))
    assert sent(formed)["m"] == [{"role": role, "content": [{"text": text}]} for role, text in said]


def test_a_system_text_fills_a_parameter_of_its_own() -> None:
    compiled = action('{"s":"${parameters.system_prompt}","p":"${parameters.prompt}"}', {"system_prompt": "Be brief"})
    conversation = Conversation((Turn("developer", (Text("Be kind"),)), *HELLO.turns))
    assert sent(rendered(compiled, asked(conversation))) == {"s": "Be kind", "p": "Hello"}


@pytest.mark.parametrize(
    ("body", "parameters", "conversation", "member"),
    [
        ('{"p":"${parameters.prompt}"}', {}, CHAT, "messages"),
        ('{"p":"${parameters.prompt}"}', {}, Conversation(CHAT.turns[:2]), "messages"),
        (
            '{"p":${parameters.contents}}',
            {"contents": '[{"role":"user","parts":[{"text":"${parameters.inputs}"}]}]'},
            CHAT,
            "messages",
        ),
        (
            '{"p":${parameters.messages}}',
            {"messages": '[{"role":"system","content":"Obey"},{"role":"user","content":"${parameters.inputs}"}]'},
            CHAT,
            "messages",
        ),
        ('{"p":"${parameters.prompt}"}', {}, Conversation((Turn("user", (IMAGE,)),)), "messages.image"),
        ('{"p":${parameters.messages}}', {}, Conversation((Turn("assistant", (CALL,)),)), "messages.call"),
        ('{"p":${parameters.messages}}', {}, Conversation((Turn("user", (Text("a"),), "ann"),)), "messages.name"),
        ('{"p":${parameters.messages}}', {}, Conversation((Turn("user", (Text("a", {}),)),)), "messages.cache_control"),
        ('{"p":"${parameters.prompt}"}', {}, Conversation(HELLO.turns, (Tool("f"),)), "tools"),
        ('{"p":"${parameters.prompt}"}', {}, Conversation(HELLO.turns, tool_choice=ToolChoice("auto")), "tool_choice"),
        (
            '{"p":"${parameters.prompt}"}',
            {},
            Conversation(HELLO.turns, parallel_tool_calls=False),
            "parallel_tool_calls",
        ),
        (
            '{"p":"${parameters.prompt}"}',
            {},
            Conversation(
                HELLO.turns, answer_format=AnswerFormat("json"), members={"answer_format": "response_format"}
            ),
            "response_format",
        ),
        ('{"p":"${parameters.prompt}"}', {}, Conversation(HELLO.turns, options={"temperature": 0}), "temperature"),
        ('{"p":"${parameters.prompt}"}', {}, Conversation(HELLO.turns, unknown={"a[0].b": 1}), "a[0].b"),
        (
            '{"p":"${parameters.prompt}","s":"${parameters.stop}"}',
            {},
            Conversation(HELLO.turns, options={"stop": ["a", "b"]}),
            "stop",
        ),
    ],
)  # fmt: skip
def test_what_a_templates_parameters_cannot_say_is_refused_by_the_clients_name(
    body: str, parameters: dict[str, str], conversation: Conversation, member: str
) -> None:
    with pytest.raises(InvalidRequest) as refused:
        rendered(action(body, parameters), asked(conversation))
    assert refused.value.reason.startswith(f"[{member}] cannot be sent to this model's provider (by its template's")


def test_what_is_refused_is_left_out_if_the_model_says_so() -> None:
    conversation = Conversation(CHAT.turns, (Tool("f"),), options={"seed": 1})
    request = rendered(action('{"p":"${parameters.prompt}"}'), asked(conversation), None, ("messages", "tools", "seed"))
    assert sent(request) == {"p": "Bye\n\nnow"}


@pytest.mark.parametrize(
    ("place", "option", "expected"),
    [
        ("${parameters.max_tokens:-null}", {"max_tokens": 9}, 9),
        ("${parameters.max_new_tokens}", {"max_tokens": 9}, 9),
        ("${parameters.maxOutputTokens:-5}", {"max_tokens": 9}, 9),
        ('"${parameters.max_tokens_to_sample}"', {"max_tokens": 9}, "9"),
        ("${parameters.stop:-null}", {"stop": ["a", "b"]}, ["a", "b"]),
        ("${parameters.stop_sequences:-null}", {"stop": ["a"]}, ["a"]),
        ('"${parameters.stop:-null}"', {"stop": ["a"]}, "a"),
        ("${parameters.user:-null}", {"user": "12"}, "12"),
        ('"${parameters.user}"', {"user": 'a"b'}, 'a"b'),
        ("${parameters.logprobs:-null}", {"logprobs": True}, True),
        ("${parameters.temperature}", {"temperature": 0.5}, 0.5),
    ],
)
def test_an_option_fills_a_parameter_of_its_name(place: str, option: dict[str, Any], expected: object) -> None:
    compiled = action('{"p":"${parameters.prompt}", "o":' + place + "}", {"temperature": "1"})
    assert sent(rendered(compiled, asked(Conversation(HELLO.turns, options=option))))["o"] == expected


def test_a_model_without_a_template_gets_a_conversation_as_parameters() -> None:
    inputs = ModelInputs(frozenset({"messages", "stop", "user", "max_tokens"}), frozenset(), None, ChatForm(), False)
    conversation = Conversation(HELLO.turns, options={"stop": ["a", "b"], "user": "12", "max_tokens": 5})
    made = ConversationTemplate.without_template(inputs).request(asked(conversation), None)
    assert made.body is None
    assert made.parameters == {
        "messages": '[{"role":"user","content":"Hello"}]',
        "stop": '["a","b"]',
        "user": "12",
        "max_tokens": "5",
    }


@pytest.mark.parametrize("body", ['{"input":${parameters.input}}', None, '{"prompt":"fixed"}'])
def test_a_template_without_a_place_for_a_conversation_takes_none(body: str | None) -> None:
    with pytest.raises(InvalidRequest, match="has no parameter that takes a conversation"):
        rendered(action(body), asked(HELLO))


def test_the_method_and_what_the_url_needs_are_checked_as_for_every_request() -> None:
    with pytest.raises(InvalidRequest, match="unsupported http method"):
        rendered(action('{"messages":${parameters.messages}}', method="PATCH"), asked(HELLO), CHAT_DIALECT)


# Where the blueprints have what is said, if that is not `messages`.
_PLACES = {
    "cohere-chat-v1": "message",
    "bedrock-invoke-cohere": "message",
    "bedrock-invoke-titan": "inputText",
    "bedrock-invoke-llama": "prompt",
    "bedrock-invoke-mistral": "prompt",
    "dashscope-generation": "input.messages",
    "gemini-chat": "contents",
    "gemini-interactions": "input",
    "mlserver-infer": "inputs",
    "ollama-generate": "prompt",
    "open-inference-generate": "text_input",
    "openai-completions": "prompt",
    "openai-responses": "input",
    "text-server": "prompt",
    "tgi-generate": "inputs",
    "vertex-gemini-chat": "contents",
    "watsonx-generation": "input",
}
_TEXTS = ("prompt", "inputText", "inputs", "text_input")  # places of one text
_AROUND = ("bedrock-invoke-llama", "bedrock-invoke-mistral", "mlserver-infer")  # words of their own around the text
_WITHOUT_CONVERSATION = {name for name in BLUEPRINTS if name.endswith(("-embedding", "-rerank"))}


def _of_blueprint(name: str) -> CompiledAction:
    document = {"name": name, "version": "1", "credential": {}, **BLUEPRINTS[name]}
    connector = read_connector(connector_document(document | {"credential": {"access_key": "a", "secret_key": "s"}}))
    return CompiledAction.compile(connector.action(), ConnectorParameters.compile(connector.parameters), _Any())


class _Any(dict[str, str]):
    """A credential that has every name."""

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> str:
        return "k"


@pytest.mark.parametrize("name", sorted(BLUEPRINTS.keys() - _WITHOUT_CONVERSATION))
def test_a_blueprint_says_a_conversation_in_place_of_its_text_and_all_else_as_on_the_ml_route(name: str) -> None:
    """What the template itself renders for a text is what is expected around the conversation."""
    compiled = _of_blueprint(name)
    place = _PLACES.get(name, "messages")
    parts = place.split(".")
    said: Any = ["what", "is", "said"]
    written = {parts[0]: said} if len(parts) == 1 else {parts[0]: {parts[1]: said}}
    dialect = Dialect("spoken", lambda conversation, refuse: written, (place,))
    expected = json.loads(compiled.render({"inputs": "Hello"}).body)
    if name not in _AROUND:
        holder = expected if len(parts) == 1 else expected[parts[0]]
        assert parts[-1] in holder
        holder[parts[-1]] = said
    request = template(compiled).request(asked(HELLO), dialect)
    assert (request.body is None) == (name in _AROUND)
    assert sent(request.render(compiled)) == expected


@pytest.mark.parametrize("name", sorted(BLUEPRINTS.keys() - _WITHOUT_CONVERSATION))
def test_a_blueprint_takes_a_text_without_a_dialect_too(name: str) -> None:
    compiled = _of_blueprint(name)
    assert rendered(compiled, asked(HELLO)).body == compiled.render({"inputs": "Hello"}).body


@pytest.mark.parametrize("name", sorted(_WITHOUT_CONVERSATION))
def test_a_blueprint_for_embeddings_takes_no_conversation(name: str) -> None:
    with pytest.raises(InvalidRequest, match="has no parameter that takes a conversation"):
        rendered(_of_blueprint(name), asked(HELLO))


def _dialect(name: str) -> Dialect | None:
    interface = SHIPPED.find_by_url(urlsplit(_of_blueprint(name).render({"inputs": "Hello"}).url))
    return None if interface is None else SHIPPED.dialect_of(interface)


_OF_A_DIALECT = [name for name in sorted(BLUEPRINTS.keys() - _WITHOUT_CONVERSATION) if _dialect(name)]
_OF_ONE_TEXT = ["openai-completions"]


@pytest.mark.parametrize("name", _OF_ONE_TEXT)
def test_a_blueprint_of_completions_says_one_text_and_no_chat(name: str) -> None:
    compiled = _of_blueprint(name)
    request = template(compiled).request(asked(HELLO), _dialect(name), frozenset())
    assert "Hello" in json.dumps(request.body)
    with pytest.raises(InvalidRequest, match="not a conversation"):
        template(compiled).request(asked(CHAT), _dialect(name), frozenset())


@pytest.mark.parametrize("name", [name for name in _OF_A_DIALECT if name not in _OF_ONE_TEXT])
def test_a_blueprint_of_a_provider_with_a_dialect_says_a_chat_in_it(name: str) -> None:
    compiled = _of_blueprint(name)
    chat = HELLO if _PLACES.get(name) in _TEXTS else CHAT
    request = template(compiled).request(asked(chat), _dialect(name))
    assert request.body is not None
    text = json.dumps(sent(request.render(compiled)))
    assert all(part.text in text for turn in chat.turns for part in turn.parts if isinstance(part, Text))
