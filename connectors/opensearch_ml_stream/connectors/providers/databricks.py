"""Databricks model serving: https://docs.databricks.com/aws/en/machine-learning/model-serving."""

from opensearch_ml_stream.connectors.conversation.dialects import openai_compatible
from opensearch_ml_stream.connectors.provider import Interface, Provider
from opensearch_ml_stream.connectors.providers.openai_chat import OPENAI_CHAT_PLAIN

PROVIDER = Provider(
    interfaces=(
        Interface(
            ("databricks/invocations",),
            OPENAI_CHAT_PLAIN,
            (r"/serving-endpoints/.+/invocations\?",),
            dialect=openai_compatible.DATABRICKS,
        ),
    ),
    trusted_endpoints=(
        r"^https://[a-z0-9-]+\.cloud\.databricks\.com/serving-endpoints/.*$",
        r"^https://adb-[0-9]+\.[0-9]+\.azuredatabricks\.net/serving-endpoints/.*$",
        r"^https://[0-9]+\.[0-9]+\.gcp\.databricks\.com/serving-endpoints/.*$",
    ),
)
