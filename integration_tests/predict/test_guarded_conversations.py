"""A word that a client splits over parts of a message, by every API and to every provider: the guardrail reads it."""

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import httpx
import pytest
from integration_tests.support.background_provider import background_provider
from integration_tests.support.connector_bodies import BLUEPRINTS, anthropic, blueprint_connector, openai
from integration_tests.support.fake_provider import json_response, openai_stream
from integration_tests.support.sidecars import Sidecar

from opensearch_ml_stream.connectors.documents import connector_document, read_connector, read_model
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.predict.guardrails.patterns import GuardPattern
from opensearch_ml_stream.connectors.predict.guardrails.payload_texts import readable_text, refusing_pattern
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.extensions.anthropic_api.messages_api import MessagesAPI
from opensearch_ml_stream.extensions.openai_api.http.completions_api import ChatAPI
from opensearch_ml_stream.extensions.openai_api.http.responses_api import ResponsesAPI
from opensearch_ml_stream.plugin.predictions.compiled_model import CompiledModel
from opensearch_ml_stream.plugin.predictions.conversation_calls import whole_request
from opensearch_ml_stream.rest_handlers.routes.conversation_endpoint import ConversationAPI

WORD = [GuardPattern.compile(".*bomb.*")]
TEXT = ("a bo", "mb, please")
ASKED = {"role": "user", "content": "Go on."}
APIS: dict[str, Callable[[], ConversationAPI]] = {
    "chat/completions": lambda: ChatAPI(lambda: 0),
    "messages": lambda: MessagesAPI(lambda: "0"),
    "responses": lambda: ResponsesAPI(lambda: 0),
}


def parts(kind: str = "text") -> list[dict[str, str]]:
    return [{"type": kind, "text": text} for text in TEXT]


def called() -> dict[str, Any]:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def chat(*messages: dict[str, Any]) -> dict[str, Any]:
    return {"messages": list(messages)}


def messages(*turns: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"messages": list(turns), "max_tokens": 9, **more}


def document(text: str) -> dict[str, Any]:
    return {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": text}}


USE = {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "f", "input": {}}]}


def result(*content: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": list(content)}]}


def item(role: str, kind: str) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": parts(kind)}


SPLIT: list[tuple[str, dict[str, Any]]] = [
    ("chat/completions", chat({"role": "system", "content": parts()}, ASKED)),
    ("chat/completions", chat({"role": "developer", "content": parts()}, ASKED)),
    ("chat/completions", chat({"role": "user", "content": parts()})),
    ("chat/completions", chat(ASKED, {"role": "assistant", "content": parts()}, ASKED)),
    ("chat/completions", chat(ASKED, called(), {"role": "tool", "tool_call_id": "c1", "content": parts()})),
    ("messages", messages(ASKED, system=parts())),
    ("messages", messages({"role": "user", "content": parts()})),
    ("messages", messages(ASKED, {"role": "assistant", "content": parts()}, ASKED)),
    ("messages", messages(ASKED, USE, result(*parts()))),
    ("messages", messages(ASKED, USE, result(document("a bo"), {"type": "text", "text": "mb"}))),
    ("messages", messages({"role": "user", "content": [document("a bo"), {"type": "text", "text": "mb"}]})),
    ("responses", {"input": [item("system", "input_text"), ASKED]}),
    ("responses", {"input": [item("user", "input_text")]}),
    ("responses", {"input": [ASKED, item("assistant", "output_text"), ASKED]}),
    (
        "responses",
        {
            "input": [
                ASKED,
                {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c1", "output": parts("input_text")},
            ]
        },
    ),
]


@cache
def conversing() -> dict[str, CompiledModel]:
    """The models of all blueprints that take a conversation, by the blueprints' names."""
    models = {}
    for file in BLUEPRINTS.glob("*.json"):
        body = blueprint_connector(file.stem, "http://127.0.0.1:1")
        connector = read_connector(connector_document(body))
        models[file.stem] = CompiledModel("m", read_model({}), connector, body["credential"])
    return {name: model for name, model in models.items() if model.dialect is not None or model.inputs.prompt}


@pytest.mark.parametrize(("api", "body"), SPLIT)
def test_a_word_in_two_parts_is_read_whatever_dialect_writes_them(api: str, body: dict[str, Any]) -> None:
    read = []
    for name, model in conversing().items():
        client = APIS[api]().read(jsontext.load_object(json.dumps({"model": "m", **body}).encode())).request
        try:
            payload = model.readable_text(whole_request(client, model))
        except InvalidRequest:  # there is no place for it, so it does not go anywhere
            continue
        assert refusing_pattern(WORD, payload, client.said()) == 0, name
        assert "bomb" in readable_text(payload, client.said()), name
        read.append(name)
    assert len(read) > 15


def test_a_pattern_with_ends_is_tried_on_each_text_that_a_dialect_joins() -> None:
    body = {"model": "m", **chat(ASKED, called(), {"role": "tool", "tool_call_id": "c1", "content": parts()})}
    client = APIS["chat/completions"]().read(body).request
    payload = conversing()["gemini-chat"].readable_text(whole_request(client, conversing()["gemini-chat"]))
    assert refusing_pattern([GuardPattern.compile("mb, pl.*")], payload) is None
    assert refusing_pattern([GuardPattern.compile("mb, pl.*")], payload, client.said()) == 0


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("connector", [openai, anthropic])
def test_it_is_refused_before_the_provider_is_called(
    sidecar: Sidecar, connector: Callable[[str], dict[str, Any]], streamed: bool
) -> None:
    guard = {"type": "local_regex", "input_guardrail": {"regex": [".*bomb.*"]}}
    with background_provider(openai_stream(["fine"]) if streamed else json_response({})) as provider:
        model_id = sidecar.create_model(connector(provider.url), guardrails=guard)
        responses: list[httpx.Response] = [
            sidecar.client.post(f"/v1/{api}", json={"model": model_id, "stream": streamed, **body})
            for api, body in SPLIT
        ]
        assert {response.status_code for response in responses} == {400}
        refused = [response for response in responses if "user input by regex[0]" in response.text]
        assert len(refused) >= len(SPLIT) - 2  # a dialect may have no place for a document
        assert provider.requests == []
