"""The URLs that connectors may call unless an operator says otherwise."""

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.plugin.upstream.trusted_endpoints import check_endpoint


@pytest.mark.parametrize(
    "url",
    [
        "https://runtime.sagemaker.us-east-1.amazonaws.com/endpoints/x/invocations",
        "https://api.sagemaker.us-east-1.amazonaws.com/CreateTransformJob",
        "https://bedrock-runtime.eu-west-1.amazonaws.com/model/a.b-c:0/converse-stream",
        "https://bedrock-agent-runtime.eu-west-1.amazonaws.com/knowledgebases/x/retrieve",
        "https://bedrock.us-gov-west-1.amazonaws.com/model-invocation-job",
        "https://textract.us-east-1.amazonaws.com",
        "https://api.openai.com/v1/chat/completions",
        "https://my-resource.openai.azure.com/openai/deployments/x/chat/completions?api-version=1",
        "https://api.anthropic.com/v1/messages",
        "https://api.cohere.ai/v1/embed",
        "https://api.cohere.com/v2/chat",
        "https://api.deepseek.com/v1/chat/completions",
        "https://api.mistral.ai/v1/chat/completions",
        "https://generativelanguage.googleapis.com/v1beta/models/m:streamGenerateContent?alt=sse",
        "https://us-central1-aiplatform.googleapis.com/v1/projects/p",
        "https://aiplatform.googleapis.com/v1/projects/p",
        "https://api.groq.com/openai/v1/chat/completions",
        "https://api.x.ai/v1/chat/completions",
        "https://api.perplexity.ai/chat/completions",
        "https://api.fireworks.ai/inference/v1/chat/completions",
        "https://api.together.xyz/v1/chat/completions",
        "https://dashscope.aliyuncs.com/compatible-mode/v1/chat/completions",
        "https://dashscope-intl.aliyuncs.com/api/v1/services/aigc/text-generation/generation",
        "https://eu-de.ml.cloud.ibm.com/ml/v1/text/chat_stream?version=2024-10-10",
        "https://my-workspace.cloud.databricks.com/serving-endpoints/m/invocations",
        "https://adb-1234567890.12.azuredatabricks.net/serving-endpoints/m/invocations",
        "https://1234567890.1.gcp.databricks.com/serving-endpoints/m/invocations",
        "https://api.cloudflare.com/client/v4/accounts/0a1b/ai/run/@cf/meta/llama-3.1-8b-instruct",
    ],
)
def test_a_providers_own_host_is_trusted(url: str) -> None:
    check_endpoint(url, Settings())


@pytest.mark.parametrize(
    "url",
    [
        "https://runtime.sagemaker.evil.example/x.amazonaws.com/y",
        "https://bedrock-runtime.evil.example/.amazonaws.com/",
        "https://bedrock-runtime.us-east-1.evil.amazonaws.com/",
        "https://api.openai.com.evil.example/v1",
        "https://api.openai.com@evil.example/v1",
        "https://user@api.openai.com/v1",
        "https://evil.example/https://api.openai.com/",
        "https://evil.example?.openai.azure.com/",
        "https://evil.example#.openai.azure.com/",
        "https://evil.example\\.openai.azure.com/",
        "https://apiXopenai.com/v1",
        "http://api.openai.com/v1",
        "https://api.openai.com:8443/v1",
        "https://textract.us-east-1.amazonaws.com/other",
        "https://api.cloudflare.com/client/v4/user/tokens",
        "https://api.cloudflare.com/client/v4/accounts/0a1b/workers/scripts/x",
        "https://my-workspace.cloud.databricks.com/api/2.0/secrets/list",
        "https://evil.aliyuncs.com/compatible-mode/v1/chat/completions",
        "https://127.0.0.1/",
    ],
)
def test_a_host_that_only_looks_like_a_providers_is_not_trusted(url: str) -> None:
    with pytest.raises(InvalidRequest):
        check_endpoint(url, Settings())
