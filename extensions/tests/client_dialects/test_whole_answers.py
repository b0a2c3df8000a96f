"""Answers in one piece behind every API: the types of the client's SDK hold them, and they can be sent back."""

import json
from typing import Any

import pytest
from anthropic.types import Message
from openai.types.chat import ChatCompletion
from openai.types.responses import Response

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, ToolCall, Usage
from opensearch_ml_stream.connectors.conversation.answer import WholeAnswer, whole_calls
from opensearch_ml_stream.connectors.conversation.dialect import ANTHROPIC, OPENAI_CHAT, OPENAI_RESPONSES
from opensearch_ml_stream.connectors.unstreamed_response import decode_whole_response
from opensearch_ml_stream.extensions.anthropic_api.messages_api import MessagesAPI
from opensearch_ml_stream.extensions.openai_api.http.completions_api import ChatAPI
from opensearch_ml_stream.extensions.openai_api.http.responses_api import ResponsesAPI
from opensearch_ml_stream.rest_handlers.routes.conversation_endpoint import AnswerRequest
from tests.client_dialects.clients import CHAT, MESSAGES, RESPONSES, Body, Client
from tests.client_dialects.dialects_page import Recording, shipped_dialects
from tests.providers.recorded_streams import EXCHANGES
from tests.providers.recordings.recording_files import WHOLE_RESPONSES

CLIENTS = {OPENAI_CHAT: CHAT, OPENAI_RESPONSES: RESPONSES, ANTHROPIC: MESSAGES}
every_client = pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)

_EXCHANGED = [(exchange.name, call.response) for exchange in EXCHANGES.values() for call in exchange.calls]
_RECORDED = [(recording.name, json.loads(recording.data)) for recording in WHOLE_RESPONSES]
ANSWERS = [
    pytest.param(*decoded, id=name)
    for name, response in (*_EXCHANGED, *_RECORDED)
    if isinstance(response, dict) and (decoded := decode_whole_response(response)) is not None
]


def asked(client: Client) -> AnswerRequest:
    body = {"model": "m", **client.least}
    if client is CHAT:
        return ChatAPI(lambda: 7).read(body)
    return ResponsesAPI(lambda: 7).read(body) if client is RESPONSES else MessagesAPI(lambda: "1").read(body)


def whole(client: Client, chunk: Chunk, ending: Ending) -> Any:
    return json.loads(asked(client).whole(WholeAnswer(chunk, ending, "m1", {}, is_as_sent=False, extra={})))


def said(client: Client, body: Any) -> tuple[str, list[str]]:
    """The text and the tools that are called, as the SDK's types have them."""
    if client is CHAT:
        message = ChatCompletion.model_validate(body).choices[0].message
        calls = [call.function.name for call in message.tool_calls or () if call.type == "function"]
        return message.content or "", calls
    if client is RESPONSES:
        response = Response.model_validate(body)
        return response.output_text, [item.name for item in response.output if item.type == "function_call"]
    content = Message.model_validate(body).content
    text = "".join(block.text for block in content if block.type == "text")
    return text, [block.name for block in content if block.type == "tool_use"]


@every_client
@pytest.mark.parametrize(("chunk", "ending"), ANSWERS)
def test_the_types_of_the_clients_sdk_hold_what_a_provider_said(client: Client, chunk: Chunk, ending: Ending) -> None:
    calls = [call.name or "" for call in whole_calls(chunk.tool_calls)]
    assert said(client, whole(client, chunk, ending)) == (chunk.text, calls)


def sent_back(client: Client, body: Any) -> Body:
    """The request that goes on after an answer, as the examples of each API do it."""
    result = {"role": "tool", "tool_call_id": "call_1", "content": "Rain"}
    output = {"type": "function_call_output", "call_id": "call_1", "output": "Rain"}
    returned = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": "Rain"}]}
    if client is CHAT:
        return {"messages": [*client.least["messages"], body["choices"][0]["message"], result]}
    if client is RESPONSES:
        return {"input": [*client.least["input"], *body["output"], output]}
    answer = {"role": "assistant", "content": body["content"]}
    return {**client.least, "messages": [*client.least["messages"], answer, returned]}


@every_client
@pytest.mark.parametrize(
    "provider", ["Anthropic", "Anthropic on Vertex and Bedrock", "Converse, Claude", "Gemini, Vertex"]
)
def test_an_answer_goes_back_with_its_reasoning_and_its_proof(client: Client, provider: str) -> None:
    call = ToolCall(0, "call_1", "weather", '{"city":"Ulm"}')
    answer = whole(client, Chunk("I look.", "Hm", (call,), signature="PROOF"), Ending("tool_calls", usage=Usage(1, 2)))
    conversation = client.read(sent_back(client, answer))
    assert conversation.unknown == {}
    dialect, refuse = shipped_dialects()[provider], Recording(frozenset(), provider)
    body = json.dumps(dialect.write(conversation, refuse))
    assert refuse.refused == []
    assert all(body.count(f'"{word}"') == 1 for word in ("PROOF", "Hm", "I look.", "Ulm", "Rain")), body
