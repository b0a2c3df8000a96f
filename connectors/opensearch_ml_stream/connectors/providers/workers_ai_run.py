"""Cloudflare Workers AI, `/ai/run/MODEL`: server-sent events in the form of the model, told by the first of them."""

from collections.abc import Iterable

from opensearch_ml_stream.connectors.conversation.dialects.workers_ai_messages import WORKERS_AI as DIALECT
from opensearch_ml_stream.connectors.decoding.event_fields import mapping
from opensearch_ml_stream.connectors.decoding.sse import SSEFraming
from opensearch_ml_stream.connectors.provider import Interface, JSONObject, Provider, WholeResponse
from opensearch_ml_stream.connectors.providers.detected_dialect import DetectedDialect
from opensearch_ml_stream.connectors.providers.openai_chat import OPENAI_CHAT, WHOLE_CHAT
from opensearch_ml_stream.connectors.stream_spec import Enable, StreamSpec

WORKERS_AI = StreamSpec(
    name="cloudflare/ai/run",
    enable=Enable(body={"stream": True}),
    framing=SSEFraming,
    reader=DetectedDialect,
)


def _to_events(response: JSONObject) -> Iterable[JSONObject]:
    """Return the result in Cloudflare's envelope, in its own form or in OpenAI's."""
    result = response["result"]
    return WHOLE_CHAT.to_events(result) if "choices" in result else [{"finish_reason": "stop", **result}]


_WHOLE = WholeResponse(lambda response: "success" in response and bool(mapping(response.get("result"))), _to_events)

PROVIDER = Provider(
    interfaces=(
        Interface((WORKERS_AI.name,), WORKERS_AI, (r"/ai/run/@.+\?",), _WHOLE, dialect=DIALECT),
        Interface(("cloudflare/v1/chat/completions",), OPENAI_CHAT),
    ),
    trusted_endpoints=(r"^https://api\.cloudflare\.com/client/v4/accounts/[a-z0-9]+/ai/.*$",),
)
