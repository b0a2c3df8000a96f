"""xAI: https://docs.x.ai/docs/api-reference."""

from opensearch_ml_stream.connectors.provider import Interface, Provider
from opensearch_ml_stream.connectors.providers.openai_chat import OPENAI_CHAT

PROVIDER = Provider(
    interfaces=(Interface(("xai/v1/chat/completions",), OPENAI_CHAT),),
    trusted_endpoints=(r"^https://api\.x\.ai/.*$",),
)
