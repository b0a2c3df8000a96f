"""Groq: https://console.groq.com/docs/api-reference."""

from opensearch_ml_stream.connectors.conversation.dialects import openai_compatible
from opensearch_ml_stream.connectors.provider import Interface, Provider
from opensearch_ml_stream.connectors.providers.openai_chat import OPENAI_CHAT

PROVIDER = Provider(
    interfaces=(
        Interface(
            ("groq/v1/chat/completions",),
            OPENAI_CHAT,
            (r"^//api\.groq\.com/(.*/)?chat/completions\?",),
            dialect=openai_compatible.GROQ,
        ),
    ),
    trusted_endpoints=(r"^https://api\.groq\.com/.*$",),
)
