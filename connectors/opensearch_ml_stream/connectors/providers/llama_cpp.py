"""llama.cpp's server, by OpenAI's interface: https://github.com/ggml-org/llama.cpp/tree/master/tools/server."""

from opensearch_ml_stream.connectors.conversation.dialects import openai_compatible
from opensearch_ml_stream.connectors.provider import Interface, Provider
from opensearch_ml_stream.connectors.providers.openai_chat import OPENAI_CHAT

PROVIDER = Provider(
    interfaces=(
        Interface(("llama.cpp/v1/chat/completions",), OPENAI_CHAT, dialect=openai_compatible.TAKES_REASONING_CONTENT),
    ),
)
