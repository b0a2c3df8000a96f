"""Every shipped blueprint: it says what it needs, renders, streams where it should, and holds no host that is fixed."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from opensearch_ml_stream.connectors.documents import Connector, connector_document, read_connector
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.known_providers import SHIPPED
from opensearch_ml_stream.connectors.rendering.compiled_action import CompiledAction, ProviderRequest
from opensearch_ml_stream.connectors.rendering.template import ConnectorParameters
from opensearch_ml_stream.connectors.selection.spec_for import spec_for
from opensearch_ml_stream.connectors.stream_spec import Enable, StreamSpec
from opensearch_ml_stream.connectors.syntax import jsontext

_FOLDER = Path(__file__).parents[3] / "blueprints"
_FILES = sorted(_FOLDER.glob("*.json"))
_QUESTION = 'What is "the meaning" of life?\n世界'

_CHAT = "openai/v1/chat/completions"

# What the shipped chat blueprints stream as, and where to.
_STREAMS = {
    "openai-chat": ("openai/v1/chat/completions", "/v1/chat/completions"),
    "openai-completions": ("openai/v1/completions", "/v1/completions"),
    "openai-responses": ("openai/v1/responses", "/v1/responses"),
    "azure-openai-chat": (
        "openai/v1/chat/completions",
        "/openai/deployments/my-deployment/chat/completions?api-version=2024-10-21",
    ),
    "deepseek-chat": ("openai/v1/chat/completions", "/v1/chat/completions"),
    "mistral-chat": ("mistral/v1/chat/completions", "/v1/chat/completions"),
    "openrouter-chat": ("openai/v1/chat/completions", "/v1/chat/completions"),
    "vllm-chat": ("openai/v1/chat/completions", "/v1/chat/completions"),
    "sglang-chat": ("openai/v1/chat/completions", "/v1/chat/completions"),
    "llama-cpp-chat": ("openai/v1/chat/completions", "/v1/chat/completions"),
    "ollama-openai-chat": ("openai/v1/chat/completions", "/v1/chat/completions"),
    "bedrock-openai-chat": ("openai/v1/chat/completions", "/openai/v1/chat/completions"),
    "anthropic-messages": ("anthropic/v1/messages", "/v1/messages"),
    "bedrock-converse": (
        "bedrock/converse",
        "/model/us.anthropic.claude-sonnet-4-20250514-v1:0/converse-stream",
    ),
    "bedrock-invoke-anthropic": (
        "bedrock/invoke",
        "/model/us.anthropic.claude-sonnet-4-20250514-v1:0/invoke-with-response-stream",
    ),
    "bedrock-invoke-titan": ("bedrock/invoke", "/model/amazon.titan-text-express-v1/invoke-with-response-stream"),
    "bedrock-invoke-llama": (
        "bedrock/invoke",
        "/model/us.meta.llama3-2-3b-instruct-v1:0/invoke-with-response-stream",
    ),
    "bedrock-invoke-mistral": (
        "bedrock/invoke",
        "/model/mistral.mistral-large-2402-v1:0/invoke-with-response-stream",
    ),
    "bedrock-invoke-cohere": ("bedrock/invoke", "/model/cohere.command-r-plus-v1:0/invoke-with-response-stream"),
    "bedrock-invoke-nova": ("bedrock/invoke", "/model/us.amazon.nova-lite-v1:0/invoke-with-response-stream"),
    "sagemaker-chat": ("sagemaker/invocations", "/endpoints/my-endpoint/invocations-response-stream"),
    "gemini-chat": (
        "gemini/v1beta/generatecontent",
        "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse",
    ),
    "vertex-gemini-chat": (
        "gemini/v1beta/generatecontent",
        "/v1/projects/my-project/locations/us-central1/publishers/google/models/"
        "gemini-2.5-flash:streamGenerateContent?alt=sse",
    ),
    "vertex-anthropic-messages": (
        "vertex/anthropic",
        "/v1/projects/my-project/locations/us-east5/publishers/anthropic/models/"
        "claude-sonnet-4-5@20250929:streamRawPredict",
    ),
    "cohere-chat-v1": ("cohere/v1/chat", "/v1/chat"),
    "cohere-chat": ("cohere/v2/chat", "/v2/chat"),
    "ollama-chat": ("ollama/api/chat", "/api/chat"),
    "ollama-generate": ("ollama/api/chat", "/api/generate"),
    "tgi-generate": ("huggingface/generate_stream", "/generate_stream"),
    "mlserver-infer": ("v2/models/infer_stream", "/v2/models/text-model/infer_stream"),
    "open-inference-generate": ("v2/models/infer_stream", "/v2/models/text-model/generate_stream"),
    "groq-chat": (_CHAT, "/v1/chat/completions"),
    "xai-chat": (_CHAT, "/v1/chat/completions"),
    "perplexity-chat": ("perplexity/chat/completions", "/chat/completions"),
    "fireworks-chat": (_CHAT, "/v1/chat/completions"),
    "together-chat": (_CHAT, "/v1/chat/completions"),
    "huggingface-chat": (_CHAT, "/v1/chat/completions"),
    "databricks-chat": (
        "databricks/invocations",
        "/serving-endpoints/databricks-meta-llama-3-3-70b-instruct/invocations",
    ),
    "dashscope-chat": (_CHAT, "/compatible-mode/v1/chat/completions"),
    "dashscope-generation": ("dashscope/generation", "/api/v1/services/aigc/text-generation/generation"),
    "watsonx-chat": ("watsonx/text/chat", "/ml/v1/text/chat_stream?version=2024-10-10"),
    "watsonx-generation": ("watsonx/text/generation", "/ml/v1/text/generation_stream?version=2024-10-10"),
    "workers-ai-chat": (_CHAT, "/client/v4/accounts/my-account/ai/v1/chat/completions"),
    "workers-ai-run": ("cloudflare/ai/run", "/client/v4/accounts/my-account/ai/run/@cf/meta/llama-3.1-8b-instruct"),
    "gemini-interactions": ("gemini/v1beta/interactions", "/v1beta/interactions"),
    "text-server": ("text/cumulative", "/generate_stream"),
}

every_blueprint = pytest.mark.parametrize("file", _FILES, ids=lambda file: file.stem)
every_stream = pytest.mark.parametrize("name", _STREAMS)


def _blueprint(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((_FOLDER / f"{name}.json").read_text("utf-8"))
    return document


def _connector(name: str, **parameters: Any) -> Connector:
    body = _blueprint(name)["connector"]
    return read_connector(connector_document({**body, "parameters": {**body["parameters"], **parameters}}))


def _rendered(connector: Connector, request: dict[str, Any], stream: StreamSpec | None) -> ProviderRequest:
    action = CompiledAction.compile(
        connector.action(), ConnectorParameters.compile(connector.parameters), connector.credential
    )
    return action.render({name: jsontext.to_parameter(value) for name, value in request.items()}, stream)


@every_blueprint
def test_a_blueprint_says_what_it_is_and_what_to_give(file: Path) -> None:
    blueprint = _blueprint(file.stem)
    connector = blueprint["connector"]
    assert set(blueprint) <= {"name", "description", "credential", "parameters", "connector", "model"}
    assert blueprint["name"] == file.stem
    assert "\n" not in blueprint["description"]
    assert set(connector["credential"]) <= set(blueprint["credential"])
    assert set(blueprint["credential"]) - set(connector["credential"]) <= {"session_token"}
    assert set(blueprint["parameters"]) <= set(connector["parameters"])
    assert all(help_text for part in ("credential", "parameters") for help_text in blueprint[part].values())
    assert connector_document(connector)["name"] == connector["name"]


@every_stream
def test_a_chat_blueprint_answers_the_plainest_request(name: str) -> None:
    connector = _connector(name, endpoint="http://127.0.0.1:8000")
    body = json.loads(_rendered(connector, {"inputs": _QUESTION}, None).body)
    assert _QUESTION in "".join(_strings(body))


@every_stream
def test_a_chat_blueprint_streams_where_its_provider_does(name: str) -> None:
    preset, path = _STREAMS[name]
    connector = _connector(name, endpoint="http://127.0.0.1:8000")
    spec = spec_for(connector, connector.action(), {})
    own, known = (replace(one, enable=Enable()) for one in (spec, SHIPPED.presets[preset]))
    assert own == known
    request = _rendered(connector, {"inputs": _QUESTION}, spec)
    assert request.url == f"http://127.0.0.1:8000{path}"
    body = json.loads(request.body)
    assert body.items() >= dict(spec.enable.body).items()
    assert _QUESTION in "".join(_strings(body))


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("messages", [{"role": "system", "content": "Be brief."}, {"role": "user", "content": 'a "b"'}]),
        ("contents", [{"role": "user", "parts": [{"text": 'a "b"'}]}]),
        ("input", [{"type": "text", "text": 'a "b"'}]),
        ("prompt", 'a "b"'),
        ("message", 'a "b"'),
    ],
)
def test_a_conversation_or_prompt_is_taken_when_it_is_given(parameter: str, value: Any) -> None:
    names = [name for name in _STREAMS if parameter in _connector(name).parameters]
    assert names
    for name in names:
        body = json.loads(_rendered(_connector(name), {parameter: value}, None).body)
        assert 'a "b"' in "".join(_strings(body)), name


@pytest.mark.parametrize("name", [file.stem for file in _FILES if file.stem not in _STREAMS])
def test_a_blueprint_that_is_no_chat_has_its_functions_and_says_that_it_cannot_stream(name: str) -> None:
    connector = _connector(name)
    action = connector.action()
    assert str(action.pre_process_function).startswith("connector.pre_process.")
    assert str(action.post_process_function).startswith("connector.post_process.")
    with pytest.raises(InvalidRequest, match="cannot stream"):
        spec_for(connector, action, {})


def test_every_blueprint_that_streams_is_in_the_table() -> None:
    assert _STREAMS.keys() <= {file.stem for file in _FILES}


@every_blueprint
def test_one_setting_moves_a_blueprint_to_another_server(file: Path) -> None:
    connector = _connector(file.stem, endpoint="http://127.0.0.1:8000")
    assert connector.action().url.startswith("${parameters.endpoint}")


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for element in inner for text in _strings(element)]
