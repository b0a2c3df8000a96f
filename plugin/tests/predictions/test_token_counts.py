"""Counts of input tokens: by providers that count them, for clients of any dialect."""

import json
from pathlib import Path
from typing import Any

import pytest

from opensearch_ml_stream.connectors.conversation.conversation import Conversation, Text, Tool, Turn
from opensearch_ml_stream.connectors.conversation.dialect import OPENAI_RESPONSES, ClientRequest
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.plugin.predictions.token_counts import TokenCount, TokenCounts
from opensearch_ml_stream.plugin.registry.document_access import VisibleDocuments
from opensearch_ml_stream.plugin.registry.models_by_name import ModelsByName
from opensearch_ml_stream.rest_handlers.callers import ANYONE
from tests.predictions.prediction_setup import prediction_setup
from tests.predictions.scripted_provider import Response, ScriptedProvider, json_response

_BLUEPRINTS = Path(__file__).parents[3] / "blueprints"
SAID = Conversation(
    (Turn("system", (Text("Be brief."),)), Turn("user", (Text("Why?"),))),
    (Tool("weather", parameters={"type": "object"}),),
    options={"max_tokens": 9, "temperature": 0.5},
)
BODY = {"input": "Why?", "instructions": "Be brief.", "temperature": 0, "store": False, "text": {"verbosity": "low"}}


async def counted(
    folder: Path, blueprint: str, response: Response, dialect: str = "of a client"
) -> tuple[TokenCount, list[tuple[str, Any]]]:
    """The count for a conversation with a model of a blueprint, and the paths and bodies that its provider was sent."""
    connector = json.loads((_BLUEPRINTS / f"{blueprint}.json").read_text())["connector"]
    connector["credential"] = dict.fromkeys(connector["credential"], "secret")
    provider = ScriptedProvider(lambda request: response)
    conversation = SAID if "openai" not in blueprint else Conversation(SAID.turns, SAID.tools)
    async with prediction_setup(folder, provider) as setup:
        await setup.add_model(connector, algorithm="REMOTE")
        names = ModelsByName(setup.store, VisibleDocuments.of(setup.store, setup.live))
        counts = TokenCounts(names, setup.models, setup.calls)
        count = await counts.count(ANYONE, "m", ClientRequest(dialect, BODY, lambda body: conversation))
    return count, [
        (call.request.url.partition("/")[2].partition("/")[2], json.loads(call.request.body)) for call in provider.calls
    ]


@pytest.mark.parametrize(
    ("blueprint", "response", "path", "within", "members"),
    [
        ("anthropic-messages", {"input_tokens": 7}, "api.anthropic.com/v1/messages/count_tokens", [],
         {"model", "system", "messages", "tools"}),
        ("openai-responses", {"object": "response.input_tokens", "input_tokens": 7},
         "api.openai.com/v1/responses/input_tokens", [], {"model", "instructions", "input", "tools"}),
        ("gemini-chat", {"totalTokens": 7},
         "generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:countTokens", ["generateContentRequest"],
         {"model", "contents", "systemInstruction", "tools", "generationConfig"}),
        ("vertex-gemini-chat", {"totalTokens": 7, "totalBillableCharacters": 20},
         "us-central1-aiplatform.googleapis.com/v1/projects/my-project/locations/us-central1/publishers/google/models"
         "/gemini-2.5-flash:countTokens", [], {"contents", "systemInstruction", "tools"}),
        ("bedrock-converse", {"inputTokens": 7},
         "bedrock-runtime.us-east-1.amazonaws.com/model/us.anthropic.claude-sonnet-4-20250514-v1%3A0/count-tokens",
         ["input", "converse"], {"system", "messages", "toolConfig"}),
    ],
)  # fmt: skip
async def test_a_provider_counts_what_it_is_sent_in_its_own_form(
    tmp_path: Path, blueprint: str, response: Any, path: str, within: list[str], members: set[str]
) -> None:
    count, [(sent_path, body)] = await counted(tmp_path, blueprint, json_response(response))
    assert (count, sent_path) == (TokenCount(7, is_estimated=False), path)
    for name in within:
        body = body[name]
    assert body.keys() == members
    assert "Why?" in json.dumps(body) and "weather" in json.dumps(body)


async def test_a_request_of_the_providers_own_dialect_is_counted_as_it_was_sent(tmp_path: Path) -> None:
    response = json_response({"object": "response.input_tokens", "input_tokens": 7})
    _, [(_, body)] = await counted(tmp_path, "openai-responses", response, OPENAI_RESPONSES)
    assert body == {"model": "gpt-5-mini", **{name: BODY[name] for name in ("input", "instructions", "text")}}


@pytest.mark.parametrize(
    ("blueprint", "status", "calls"),
    [
        ("openai-chat", 200, 0),
        ("vertex-anthropic-messages", 200, 0),
        ("anthropic-messages", 404, 1),
        ("openai-responses", 405, 1),
        ("gemini-chat", 400, 1),
        ("bedrock-converse", 400, 1),
        ("bedrock-converse", 403, 1),
    ],
)
async def test_where_nobody_counts_them_the_tokens_are_estimated(
    tmp_path: Path, blueprint: str, status: int, calls: int
) -> None:
    count, sent = await counted(tmp_path, blueprint, json_response({"message": "no"}, status))
    assert count.is_estimated
    assert count.input_tokens > 0
    assert len(sent) == calls


@pytest.mark.parametrize("response", [json_response({"error": {"message": "no"}}, 400), json_response({"tokens": 7})])
async def test_a_fault_of_the_provider_is_told(tmp_path: Path, response: Response) -> None:
    with pytest.raises(UpstreamError):
        await counted(tmp_path, "openai-responses", response)
