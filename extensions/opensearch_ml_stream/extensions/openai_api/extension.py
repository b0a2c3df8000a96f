"""The declaration of OpenAI's API."""

from opensearch_ml_stream.plugin.extension import Command, Extension

CHAT_PATH = "/v1/chat/completions"
COMPLETIONS_PATH = "/v1/completions"
EMBEDDINGS_PATH = "/v1/embeddings"
MODELS_PATH = "/v1/models"
RESPONSES_PATH = "/v1/responses"
INPUT_TOKENS_PATH = RESPONSES_PATH + "/input_tokens"

BEGINNINGS = ("/v1/chat", COMPLETIONS_PATH, EMBEDDINGS_PATH, MODELS_PATH, RESPONSES_PATH)
"""How the paths of this API begin."""


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
            "opensearch_ml_stream.extensions.openai_api.cli.chat_command:chat",
            "Converse with a model; behind a pipe, or with a question, print one answer.",
            takes_model_id=True,
        ),
    ),
    paths=BEGINNINGS,
    error_form="opensearch_ml_stream.extensions.openai_api.protocol.errors:error_body",
)
