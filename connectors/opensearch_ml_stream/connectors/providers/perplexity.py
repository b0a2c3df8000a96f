"""Perplexity: https://docs.perplexity.ai/api-reference."""

from opensearch_ml_stream.connectors.conversation.dialects import openai_compatible
from opensearch_ml_stream.connectors.provider import Interface, Provider
from opensearch_ml_stream.connectors.providers.openai_chat import OPENAI_CHAT_PLAIN

PROVIDER = Provider(
    interfaces=(
        Interface(
            ("perplexity/chat/completions",),
            OPENAI_CHAT_PLAIN,
            (r"[./]perplexity\.ai/(.*/)?chat/completions\?",),
            dialect=openai_compatible.PERPLEXITY,
        ),
    ),
    trusted_endpoints=(r"^https://api\.perplexity\.ai/.*$",),
)
