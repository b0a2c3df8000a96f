"""DeepSeek: https://api-docs.deepseek.com/."""

from opensearch_ml_stream.connectors.conversation.dialects import openai_compatible
from opensearch_ml_stream.connectors.provider import Interface, Provider
from opensearch_ml_stream.connectors.providers.openai_chat import OPENAI_CHAT

PROVIDER = Provider(
    interfaces=(
        Interface(
            ("deepseek/v1/chat/completions",),
            OPENAI_CHAT,
            (r"^//api\.deepseek\.com/(.*/)?chat/completions\?",),
            dialect=openai_compatible.DEEPSEEK,
        ),
    ),
    trusted_endpoints=(r"^https://api\.deepseek\.com/.*$",),
)
