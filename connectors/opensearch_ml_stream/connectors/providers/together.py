"""Together: https://docs.together.ai/reference/chat-completions."""

from opensearch_ml_stream.connectors.provider import Interface, Provider
from opensearch_ml_stream.connectors.providers.openai_chat import OPENAI_CHAT

PROVIDER = Provider(
    interfaces=(Interface(("together/v1/chat/completions",), OPENAI_CHAT),),
    trusted_endpoints=(r"^https://api\.together\.(xyz|ai)/.*$",),
)
