"""OpenRouter: https://openrouter.ai/docs/api-reference/streaming."""

from opensearch_ml_stream.connectors.provider import Interface, Provider
from opensearch_ml_stream.connectors.providers.openai_chat import OPENAI_CHAT

PROVIDER = Provider(
    interfaces=(Interface(("openrouter/v1/chat/completions",), OPENAI_CHAT),),
    trusted_endpoints=(r"^https://openrouter\.ai/.*$",),
)
