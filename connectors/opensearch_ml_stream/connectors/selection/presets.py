"""PRESETS: the stream specs that a connector can name in `_llm_interface` or `_stream`, by name."""

from collections.abc import Mapping

from opensearch_ml_stream.connectors.providers.anthropic import ANTHROPIC, VERTEX_ANTHROPIC
from opensearch_ml_stream.connectors.providers.bedrock_converse import BEDROCK_CONVERSE
from opensearch_ml_stream.connectors.providers.cohere import COHERE_V1, COHERE_V2
from opensearch_ml_stream.connectors.providers.cumulative_text import CUMULATIVE_TEXT
from opensearch_ml_stream.connectors.providers.dashscope import DASHSCOPE
from opensearch_ml_stream.connectors.providers.google.gemini import GEMINI, GEMINI_ARRAY
from opensearch_ml_stream.connectors.providers.google.interactions import GEMINI_INTERACTIONS
from opensearch_ml_stream.connectors.providers.model_hosts.bedrock_invoke import BEDROCK_INVOKE
from opensearch_ml_stream.connectors.providers.model_hosts.generate_stream import GENERATE_STREAM
from opensearch_ml_stream.connectors.providers.model_hosts.sagemaker import SAGEMAKER
from opensearch_ml_stream.connectors.providers.model_hosts.workers_ai_run import WORKERS_AI
from opensearch_ml_stream.connectors.providers.ollama import OLLAMA
from opensearch_ml_stream.connectors.providers.open_inference import OPEN_INFERENCE
from opensearch_ml_stream.connectors.providers.openai.chat import OPENAI_CHAT, OPENAI_CHAT_PLAIN
from opensearch_ml_stream.connectors.providers.openai.completions import OPENAI_COMPLETIONS
from opensearch_ml_stream.connectors.providers.openai.responses import OPENAI_RESPONSES
from opensearch_ml_stream.connectors.providers.watsonx import WATSONX_CHAT, WATSONX_GENERATION
from opensearch_ml_stream.connectors.stream_spec import StreamSpec

_SPECS = (
    OPENAI_CHAT,
    OPENAI_CHAT_PLAIN,
    OPENAI_COMPLETIONS,
    OPENAI_RESPONSES,
    ANTHROPIC,
    VERTEX_ANTHROPIC,
    BEDROCK_CONVERSE,
    BEDROCK_INVOKE,
    SAGEMAKER,
    GEMINI,
    GEMINI_ARRAY,
    GEMINI_INTERACTIONS,
    COHERE_V1,
    COHERE_V2,
    OLLAMA,
    GENERATE_STREAM,
    OPEN_INFERENCE,
    CUMULATIVE_TEXT,
    DASHSCOPE,
    WATSONX_CHAT,
    WATSONX_GENERATION,
    WORKERS_AI,
)

# By name: each spec's own, ML Commons' other names for it, and names for providers that use the same interface.
PRESETS: Mapping[str, StreamSpec] = {
    **{spec.name: spec for spec in _SPECS},
    "bedrock/converse/claude": BEDROCK_CONVERSE,
    "azure/openai/chat/completions": OPENAI_CHAT,
    "deepseek/v1/chat/completions": OPENAI_CHAT,
    "openrouter/v1/chat/completions": OPENAI_CHAT,
    "vllm/v1/chat/completions": OPENAI_CHAT,
    "sglang/v1/chat/completions": OPENAI_CHAT,
    "llama.cpp/v1/chat/completions": OPENAI_CHAT,
    "ollama/v1/chat/completions": OPENAI_CHAT,
    "bedrock/openai/v1/chat/completions": OPENAI_CHAT,
    "groq/v1/chat/completions": OPENAI_CHAT,
    "xai/v1/chat/completions": OPENAI_CHAT,
    "fireworks/v1/chat/completions": OPENAI_CHAT,
    "together/v1/chat/completions": OPENAI_CHAT,
    "huggingface/v1/chat/completions": OPENAI_CHAT,
    "dashscope/v1/chat/completions": OPENAI_CHAT,
    "cloudflare/v1/chat/completions": OPENAI_CHAT,
    "perplexity/chat/completions": OPENAI_CHAT_PLAIN,
    "databricks/invocations": OPENAI_CHAT_PLAIN,
    "vertex/gemini": GEMINI,
    "ollama/api/generate": OLLAMA,
    "v2/models/generate_stream": OPEN_INFERENCE,
}
