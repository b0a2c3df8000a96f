"""vLLM's server: https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html."""

from opensearch_ml_stream.connectors.conversation.dialects import openai_compatible
from opensearch_ml_stream.connectors.provider import Interface, Provider
from opensearch_ml_stream.connectors.providers.openai_chat import OPENAI_CHAT

PROVIDER = Provider(
    interfaces=(Interface(("vllm/v1/chat/completions",), OPENAI_CHAT, dialect=openai_compatible.TAKES_REASONING),),
)
