"""All dialects that no client speaks: what they refuse, and which providers have one."""

import json
from pathlib import Path
from typing import Any

import pytest

from opensearch_ml_stream.connectors.conversation.conversation import OPTION_NAMES, Conversation
from opensearch_ml_stream.connectors.conversation.dialect import Dialect
from opensearch_ml_stream.connectors.conversation.dialects.gemini_contents import GEMINI
from opensearch_ml_stream.connectors.documents import connector_document, read_connector
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.providers.cohere import DIALECT as COHERE
from opensearch_ml_stream.connectors.providers.dashscope import DIALECT as DASHSCOPE
from opensearch_ml_stream.connectors.providers.gemini_interactions import DIALECT as GEMINI_INTERACTIONS
from opensearch_ml_stream.connectors.providers.ollama import DIALECT as OLLAMA
from opensearch_ml_stream.connectors.providers.workers_ai_run import DIALECT as WORKERS_AI
from opensearch_ml_stream.connectors.stream_spec_lookup import choose_spec
from tests.conversation.common_conversation import TOOLS, refused, said, turn, write

DIALECTS = (COHERE, DASHSCOPE, GEMINI, GEMINI_INTERACTIONS, OLLAMA, WORKERS_AI)
_FOLDER = Path(__file__).parents[3] / "blueprints"

# A value of each option that asks for something.
ASKING: dict[str, Any] = {
    "max_tokens": 9, "temperature": 0.5, "top_p": 0.9, "top_k": 4, "min_p": 0.1, "stop": ["END"], "seed": 7,
    "presence_penalty": 0.5, "frequency_penalty": 0.5, "logit_bias": {"1": 2}, "logprobs": True, "top_logprobs": 2,
    "n": 2, "reasoning_effort": "high", "reasoning_tokens": 1024, "reasoning_summary": "auto", "verbosity": "low",
    "user": "u", "metadata": {"a": "b"}, "service_tier": "flex", "modalities": ["text", "audio"],
    "audio": {"voice": "x"},
}  # fmt: skip
ASKING_NOTHING: dict[str, Any] = {
    "stop": [], "logit_bias": {}, "logprobs": False, "top_logprobs": 0, "n": 1, "verbosity": "medium", "metadata": {},
    "service_tier": "auto", "modalities": ["text"], "reasoning_effort": "none", "reasoning_tokens": 0,
}  # fmt: skip

# These take a text, or what their model or container takes: a conversation fills their template's parameters.
WITHOUT_DIALECT = {
    "bedrock-invoke-cohere", "bedrock-invoke-llama", "bedrock-invoke-mistral", "bedrock-invoke-nova",
    "bedrock-invoke-titan", "cohere-chat-v1", "mlserver-infer", "ollama-generate", "open-inference-generate",
    "sagemaker-chat", "text-server", "tgi-generate", "watsonx-generation",
}  # fmt: skip

every_dialect = pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)


@every_dialect
@pytest.mark.parametrize("option", OPTION_NAMES)
def test_an_option_is_written_or_refused_by_the_clients_name(dialect: Dialect, option: str) -> None:
    conversation = said("Hi", options={option: ASKING[option]}, members={option: f"client_{option}"})
    members = refused(dialect, conversation)
    written = dialect.write(conversation, lambda member, why="": None) != write(dialect, said("Hi"))
    shown_anyway = option == "reasoning_summary" and dialect in (COHERE, DASHSCOPE, OLLAMA)
    assert members == ([] if written or shown_anyway else [f"client_{option}"])


@every_dialect
def test_an_option_that_asks_for_nothing_is_taken(dialect: Dialect) -> None:
    assert refused(dialect, said("Hi", options=ASKING_NOTHING)) == []


@every_dialect
def test_what_is_unknown_and_the_names_of_participants_are_refused(dialect: Dialect) -> None:
    conversation = Conversation(
        (turn("user", "Hi", name="ann"),), unknown={"web.search": 1}, members={"turns": "input"}
    )
    assert set(refused(dialect, conversation)) == {"input.name", "web.search"}
    with pytest.raises(InvalidRequest, match="name"):
        write(dialect, conversation)


@every_dialect
def test_one_call_at_a_time_is_asked_of_tools_alone(dialect: Dialect) -> None:
    assert refused(dialect, said("Hi", parallel_tool_calls=False)) == []
    assert refused(dialect, said("Hi", tools=TOOLS, parallel_tool_calls=True)) == []


@every_dialect
def test_what_a_dialect_writes_holds_its_turns(dialect: Dialect) -> None:
    body = write(dialect, Conversation((turn("system", "Be short."), turn("user", "Hi"))))
    for path in dialect.turns:
        value: Any = body
        for name in path.split("."):
            value = value[name]
        assert "Be short." in json.dumps(value) or "Hi" in json.dumps(value)


@pytest.mark.parametrize("file", sorted(_FOLDER.glob("*.json")), ids=lambda file: file.stem)
def test_a_blueprint_that_converses_has_a_dialect(file: Path) -> None:
    connector = read_connector(connector_document(json.loads(file.read_text("utf-8"))["connector"]))
    try:
        dialect = choose_spec(connector, connector.action(), {}).dialect
    except InvalidRequest:
        return  # embeddings and the like
    assert (dialect is None) == (file.stem in WITHOUT_DIALECT)
