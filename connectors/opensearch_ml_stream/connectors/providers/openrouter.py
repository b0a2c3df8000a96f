"""OpenRouter: https://openrouter.ai/docs/api-reference/streaming."""

from opensearch_ml_stream.connectors.conversation.dialects import openai_compatible
from opensearch_ml_stream.connectors.provider import Interface, Provider
from opensearch_ml_stream.connectors.providers.openai_chat import OPENAI_CHAT

PROVIDER = Provider(
    interfaces=(
        Interface(
            ("openrouter/v1/chat/completions",),
            OPENAI_CHAT,
            (r"^//openrouter\.ai/(.*/)?chat/completions\?",),
            dialect=openai_compatible.OPENROUTER,
        ),
    ),
    trusted_endpoints=(r"^https://openrouter\.ai/.*$",),
)
