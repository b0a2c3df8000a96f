"""SGLang's server: https://docs.sglang.ai/basic_usage/openai_api_completions.html."""

from opensearch_ml_stream.connectors.provider import Interface, Provider
from opensearch_ml_stream.connectors.providers.openai_chat import OPENAI_CHAT

PROVIDER = Provider(
    interfaces=(Interface(("sglang/v1/chat/completions",), OPENAI_CHAT),),
)
