"""Fireworks: https://docs.fireworks.ai/api-reference/post-chatcompletions."""

from opensearch_ml_stream.connectors.conversation.dialects import openai_compatible
from opensearch_ml_stream.connectors.provider import Interface, Provider
from opensearch_ml_stream.connectors.providers.openai_chat import OPENAI_CHAT

PROVIDER = Provider(
    interfaces=(
        Interface(
            ("fireworks/v1/chat/completions",),
            OPENAI_CHAT,
            (r"^//api\.fireworks\.ai/(.*/)?chat/completions\?",),
            dialect=openai_compatible.TAKES_REASONING_CONTENT,
        ),
    ),
    trusted_endpoints=(r"^https://api\.fireworks\.ai/.*$",),
)
