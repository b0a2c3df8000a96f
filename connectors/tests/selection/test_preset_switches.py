"""How each preset turns its provider's streaming on: exactly once, with its companions, whatever the template says.

The table is written from the providers' references, those of `provider_requests`, and not from the presets. A preset
without a row is held to its recorded exchange.
"""

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from opensearch_ml_stream.connectors.documents import Action
from opensearch_ml_stream.connectors.known_providers import SHIPPED
from opensearch_ml_stream.connectors.rendering.compiled_action import CompiledAction, ProviderRequest
from opensearch_ml_stream.connectors.rendering.template import ConnectorParameters
from tests.providers.recorded_streams import EXCHANGES, Exchange

_HOST = "https://provider.example"
_OWN = '"text": "${parameters.inputs}", "temperature": ${parameters.temperature}'
_KEPT = {"text": 'a "stream": false', "temperature": "0.10"}
# A template may say nothing of streaming, forbid it, ask for it with other options, or leave it to the caller.
_TEMPLATES = [
    f"{{ {_OWN} }}",
    f'{{ "stream": false, {_OWN} }}',
    f'{{ "stream": true, {_OWN}, "stream_options": {{"include_usage": false, "chunk_size": 1}} }}',
    f'{{ {_OWN}, "stream": ${{parameters.stream}} }}',
]


@dataclass(frozen=True)
class Switch:
    """Members set in the body, members that must not be in it, headers, and paths with query, whole and streaming."""

    body: dict[str, Any] = field(default_factory=dict)
    drops: tuple[str, ...] = ()
    headers: dict[str, str] = field(default_factory=dict)
    paths: tuple[tuple[str, str], ...] = (("/chat", "/chat"),)


_STREAM = {"stream": True}
_CHAT = Switch({"stream": True, "stream_options": {"include_usage": True}})
_BODY = Switch(_STREAM)
_CONVERSE = Switch(
    paths=(("/model/m/converse", "/model/m/converse-stream"), ("/model/m/converse-stream", "/model/m/converse-stream")),
)
_GENERATE = (("/generate", "/generate_stream"), ("/generate_stream", "/generate_stream"))
_GEMINI = (
    ("/m:generateContent", "/m:streamGenerateContent?alt=sse"),
    ("/m:streamGenerateContent?alt=json", "/m:streamGenerateContent?alt=sse"),
)
_INFER = (("/infer", "/infer_stream"), *_GENERATE)

SWITCHES = {
    "openai/v1/chat/completions": _CHAT,
    "mistral/v1/chat/completions": Switch(_STREAM, drops=("stream_options",)),
    "databricks/invocations": Switch(_STREAM, drops=("stream_options",)),
    "perplexity/chat/completions": Switch(_STREAM, drops=("stream_options",)),
    "cloudflare/ai/run": _BODY,
    "dashscope/generation": Switch(
        {"parameters": {"incremental_output": True}}, headers={"X-DashScope-SSE": "enable"}
    ),
    "gemini/v1beta/interactions": _BODY,
    "watsonx/text/chat": Switch(drops=("stream", "stream_options"), paths=(("/text/chat", "/text/chat_stream"),)),
    "watsonx/text/generation": Switch(
        drops=("stream", "stream_options"), paths=(("/text/generation", "/text/generation_stream"),)
    ),
    "openai/v1/completions": _CHAT,
    "openai/v1/responses": _BODY,
    "anthropic/v1/messages": _BODY,
    "vertex/anthropic": Switch(
        _STREAM, paths=(("/m:rawPredict", "/m:streamRawPredict"), ("/m:streamRawPredict", "/m:streamRawPredict"))
    ),
    "bedrock/converse": _CONVERSE,
    "bedrock/converse/claude": _CONVERSE,
    "bedrock/invoke": Switch(
        drops=("stream", "stream_options"), paths=(("/model/m/invoke", "/model/m/invoke-with-response-stream"),)
    ),
    "sagemaker/invocations": Switch(paths=(("/endpoints/e/invocations", "/endpoints/e/invocations-response-stream"),)),
    "gemini/v1beta/generatecontent": Switch(paths=_GEMINI),
    "vertex/gemini": Switch(paths=_GEMINI),
    "gemini/v1beta/generatecontent/json-array": Switch(paths=(("/m:generateContent", "/m:streamGenerateContent"),)),
    "cohere/v1/chat": _BODY,
    "cohere/v2/chat": _BODY,
    "ollama/api/chat": _BODY,
    "ollama/api/generate": _BODY,
    "huggingface/generate_stream": Switch(_STREAM, paths=_GENERATE),
    "text/cumulative": Switch(_STREAM, paths=_GENERATE),
    "v2/models/infer_stream": Switch(paths=_INFER),
    "v2/models/generate_stream": Switch(paths=_INFER),
}  # fmt: skip


def _recorded_switch(exchange: Exchange) -> Switch:
    [call], streamed = exchange.calls, exchange.streamed
    assert streamed is not None
    added = {name: value for name, value in streamed.body.items() if call.body.get(name) != value}
    return Switch(added, headers=streamed.headers, paths=((call.path, streamed.path),))


for _exchange in EXCHANGES.values():
    if _exchange.streamed is not None and _exchange.preset not in SWITCHES:
        SWITCHES[_exchange.preset] = _recorded_switch(_exchange)


def rendered(preset: str | None, path: str, template: str) -> ProviderRequest:
    action = Action("PREDICT", "POST", _HOST + path, headers={"X-Own": "kept"}, request_body=template)
    compiled = CompiledAction.compile(action, ConnectorParameters.compile({}), {})
    request = {"inputs": _KEPT["text"], "temperature": "0.10", "stream": "false"}
    return compiled.render(request, SHIPPED.presets[preset] if preset else None)


def exact(body: bytes) -> dict[str, Any]:
    """Parse an object with numbers as their texts. A name that occurs twice in it is an error."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len(dict(pairs)) == len(pairs), [name for name, _ in pairs]
        return dict(pairs)

    parsed: dict[str, Any] = json.loads(body, object_pairs_hook=unique, parse_float=str, parse_int=str)
    return parsed


def test_the_streaming_of_every_preset_is_known() -> None:
    known = {id(SHIPPED.presets[name]) for name in SWITCHES}
    missing = sorted(name for name, spec in SHIPPED.presets.items() if id(spec) not in known)
    assert missing == [], "record an exchange with the provider in connectors/tests/providers/exchanges"


@pytest.mark.parametrize("template", _TEMPLATES)
@pytest.mark.parametrize("preset", SWITCHES)
def test_streaming_is_turned_on_once_and_everything_else_stays(preset: str, template: str) -> None:
    switch = SWITCHES[preset]
    for path, streaming in switch.paths:
        whole, streamed = rendered(None, path, template), rendered(preset, path, template)
        expected = {name: value for name, value in exact(whole.body).items() if name not in switch.drops}
        assert exact(streamed.body) == {**expected, **switch.body}
        assert exact(streamed.body).items() >= _KEPT.items()
        assert streamed.url == _HOST + streaming
        assert streamed.headers == {**whole.headers, **switch.headers}
        assert streamed.method == whole.method
