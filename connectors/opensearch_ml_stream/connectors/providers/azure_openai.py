"""Azure OpenAI: https://learn.microsoft.com/azure/ai-foundry/openai/reference."""

from opensearch_ml_stream.connectors.conversation.dialects import openai_compatible
from opensearch_ml_stream.connectors.provider import Interface, Provider
from opensearch_ml_stream.connectors.providers.openai_chat import OPENAI_CHAT, OPENAI_CHAT_PLAIN

PROVIDER = Provider(
    interfaces=(
        Interface(
            ("azure/openai/chat/completions",),
            OPENAI_CHAT,
            (r"^//[a-z0-9-]+\.(openai|services\.ai)\.azure\.com/openai/(.*/)?chat/completions\?",),
            dialect=openai_compatible.OPENAI,
        ),
        # Versions of its API before 2024-09-01 refuse `stream_options`.
        Interface(
            (),
            OPENAI_CHAT_PLAIN,
            (r"^//.*/chat/completions\?(.*&)?api-version=20(2[0-3]-..|24-0[1-8])-..",),
            dialect=openai_compatible.AZURE_OLD,
        ),
    ),
    trusted_endpoints=(
        r"^https://[a-z0-9-]+\.openai\.azure\.com/.*$",
        r"^https://[a-z0-9-]+\.services\.ai\.azure\.com/.*$",
    ),
    model_parameters=frozenset(
        {
            "deployment",
            "deployment_id",
            "deploymentId",
            "deployment_name",
            "deploymentName",
            "deploy-name",
            "deploy_name",
        }
    ),
)
