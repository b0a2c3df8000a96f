"""The declaration of OpenAI's API."""

from opensearch_ml_stream.extensions.openai_api.paths import BEGINNINGS
from opensearch_ml_stream.plugin.extension import Command, Extension

EXTENSION = Extension(
    name="openai_api",
    summary=(
        "OpenAI's API on every model: `/v1/chat/completions`, `/v1/responses`, `/v1/completions`, `/v1/embeddings`,"
        " `/v1/models`."
    ),
    open="opensearch_ml_stream.extensions.openai_api.opening:open_openai_api",
    commands=(
        Command(
            "env",
            "opensearch_ml_stream.extensions.openai_api.cli.env_command:env",
            "Print the variables that point clients of OpenAI and Anthropic to a model.",
            takes_model_id=True,
        ),
        Command(
            "chat",
            "opensearch_ml_stream.extensions.openai_api.terminal.chat_command:chat",
            "Converse with a model; behind a pipe, or with a question, print one answer.",
            takes_model_id=True,
        ),
    ),
    paths=BEGINNINGS,
    error_form="opensearch_ml_stream.extensions.openai_api.protocol.errors:error_body",
)
