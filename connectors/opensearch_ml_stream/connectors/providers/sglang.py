"""SGLang's server: https://docs.sglang.ai/basic_usage/openai_api_completions.html."""

from opensearch_ml_stream.connectors.conversation.dialects import openai_compatible
from opensearch_ml_stream.connectors.provider import Interface, Provider
from opensearch_ml_stream.connectors.providers.openai_chat import OPENAI_CHAT

PROVIDER = Provider(
    interfaces=(
        Interface(("sglang/v1/chat/completions",), OPENAI_CHAT, dialect=openai_compatible.TAKES_REASONING_CONTENT),
    ),
)
