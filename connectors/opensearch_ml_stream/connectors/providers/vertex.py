"""Google Vertex AI: Gemini, and Claude by Anthropic's interface.

https://cloud.google.com/vertex-ai/generative-ai/docs/partner-models/claude/use-claude.
"""

from opensearch_ml_stream.connectors.conversation.dialects.anthropic_messages import HOSTED_MESSAGES
from opensearch_ml_stream.connectors.decoding.sse import SSEFraming
from opensearch_ml_stream.connectors.provider import Interface, Provider
from opensearch_ml_stream.connectors.providers.anthropic import Anthropic
from opensearch_ml_stream.connectors.providers.gemini import GEMINI
from opensearch_ml_stream.connectors.stream_spec import Enable, StreamSpec

# The connector's template sets `anthropic_version` in the body.
VERTEX_ANTHROPIC = StreamSpec(
    name="vertex/anthropic",
    enable=Enable(body={"stream": True}, url=((":rawPredict", ":streamRawPredict"),)),
    framing=SSEFraming,
    reader=Anthropic,
    has_fast_path=True,
)

PROVIDER = Provider(
    interfaces=(
        Interface(("vertex/gemini",), GEMINI),
        Interface(
            (VERTEX_ANTHROPIC.name,),
            VERTEX_ANTHROPIC,
            (r"/publishers/anthropic/models/.+:(streamR|r)awPredict\?",),
            dialect=HOSTED_MESSAGES,
        ),
    ),
    trusted_endpoints=(r"^https://([a-z0-9-]+-)?aiplatform\.googleapis\.com/.*$",),
)
