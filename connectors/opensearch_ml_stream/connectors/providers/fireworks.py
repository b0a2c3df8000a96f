"""Fireworks: https://docs.fireworks.ai/api-reference/post-chatcompletions."""

from opensearch_ml_stream.connectors.provider import Interface, Provider
from opensearch_ml_stream.connectors.providers.openai_chat import OPENAI_CHAT

PROVIDER = Provider(
    interfaces=(Interface(("fireworks/v1/chat/completions",), OPENAI_CHAT),),
    trusted_endpoints=(r"^https://api\.fireworks\.ai/.*$",),
)
