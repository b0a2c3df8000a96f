"""xAI: https://docs.x.ai/docs/api-reference."""

from opensearch_ml_stream.connectors.conversation.dialects import openai_compatible
from opensearch_ml_stream.connectors.provider import Interface, Provider
from opensearch_ml_stream.connectors.providers.openai_chat import OPENAI_CHAT

PROVIDER = Provider(
    interfaces=(
        Interface(
            ("xai/v1/chat/completions",),
            OPENAI_CHAT,
            (r"^//api\.x\.ai/(.*/)?chat/completions\?",),
            dialect=openai_compatible.XAI,
        ),
    ),
    trusted_endpoints=(r"^https://api\.x\.ai/.*$",),
)
