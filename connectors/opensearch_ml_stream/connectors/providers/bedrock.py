"""Amazon Bedrock: Converse, InvokeModel and OpenAI's interface."""

from opensearch_ml_stream.connectors.provider import Interface, Provider
from opensearch_ml_stream.connectors.providers.bedrock_converse import BEDROCK_CONVERSE, WHOLE_CONVERSE
from opensearch_ml_stream.connectors.providers.bedrock_invoke import BEDROCK_INVOKE
from opensearch_ml_stream.connectors.providers.openai_chat import OPENAI_CHAT

PROVIDER = Provider(
    interfaces=(
        Interface(
            ("bedrock/converse", "bedrock/converse/claude"),
            BEDROCK_CONVERSE,
            (r"/model/.+/converse(-stream)?\?",),
            WHOLE_CONVERSE,
        ),
        Interface((BEDROCK_INVOKE.name,), BEDROCK_INVOKE, (r"/model/.+/invoke(-with-response-stream)?\?",)),
        Interface(("bedrock/openai/v1/chat/completions",), OPENAI_CHAT),
    ),
    trusted_endpoints=(r"^https://bedrock-runtime\.[a-z0-9-]+\.amazonaws\.com(\.cn)?/.*$",),
)
