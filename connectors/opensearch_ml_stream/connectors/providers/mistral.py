"""Mistral: https://docs.mistral.ai/api."""

from opensearch_ml_stream.connectors.conversation.dialects import openai_compatible
from opensearch_ml_stream.connectors.provider import Interface, Provider
from opensearch_ml_stream.connectors.providers.openai_chat import OPENAI_CHAT_PLAIN

PROVIDER = Provider(
    interfaces=(
        Interface(
            ("mistral/v1/chat/completions",),
            OPENAI_CHAT_PLAIN,
            (r"[./]mistral\.ai/(.*/)?chat/completions\?",),
            dialect=openai_compatible.MISTRAL,
        ),
    ),
    trusted_endpoints=(r"^https://api\.mistral\.ai/.*$",),
)
