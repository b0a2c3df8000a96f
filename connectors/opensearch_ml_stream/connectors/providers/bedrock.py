"""Amazon Bedrock: Converse, InvokeModel and OpenAI's interface."""

from opensearch_ml_stream.connectors.conversation.dialects.anthropic_messages import HOSTED_MESSAGES
from opensearch_ml_stream.connectors.conversation.dialects.converse import CLAUDE_CONVERSE, CONVERSE
from opensearch_ml_stream.connectors.provider import Interface, Provider
from opensearch_ml_stream.connectors.providers.bedrock_converse import BEDROCK_CONVERSE, WHOLE_CONVERSE
from opensearch_ml_stream.connectors.providers.bedrock_invoke import BEDROCK_INVOKE
from opensearch_ml_stream.connectors.providers.openai_chat import OPENAI_CHAT

PROVIDER = Provider(
    interfaces=(
        # Those of a maker's models come first: of two matches that are equally long the first decides.
        Interface(
            ("bedrock/converse/claude",),
            BEDROCK_CONVERSE,
            (r"/model/.*anthropic.*/converse(-stream)?\?",),
            dialect=CLAUDE_CONVERSE,
        ),
        # What such a resource runs, only the name says.
        Interface(
            (),
            BEDROCK_CONVERSE,
            (r"/model/arn.*(application-inference-profile|provisioned-model|prompt-router).*/converse(-stream)?\?",),
            dialect=CONVERSE,
            is_shared=True,
        ),
        Interface(
            ("bedrock/converse",),
            BEDROCK_CONVERSE,
            (r"/model/.+/converse(-stream)?\?",),
            WHOLE_CONVERSE,
            CONVERSE,
        ),
        Interface(
            (), BEDROCK_INVOKE, (r"/model/.*anthropic.*/invoke(-with-response-stream)?\?",), dialect=HOSTED_MESSAGES
        ),
        Interface((BEDROCK_INVOKE.name,), BEDROCK_INVOKE, (r"/model/.+/invoke(-with-response-stream)?\?",)),
        Interface(("bedrock/openai/v1/chat/completions",), OPENAI_CHAT),
    ),
    trusted_endpoints=(r"^https://bedrock-runtime\.[a-z0-9-]+\.amazonaws\.com(\.cn)?/.*$",),
)
