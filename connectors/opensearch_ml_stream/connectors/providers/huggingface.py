"""Hugging Face's router to inference providers: https://huggingface.co/docs/inference-providers."""

from opensearch_ml_stream.connectors.provider import Interface, Provider
from opensearch_ml_stream.connectors.providers.openai_chat import OPENAI_CHAT

PROVIDER = Provider(
    interfaces=(Interface(("huggingface/v1/chat/completions",), OPENAI_CHAT),),
    trusted_endpoints=(r"^https://router\.huggingface\.co/.*$",),
)
