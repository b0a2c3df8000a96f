"""The declaration of Anthropic's Messages API."""

from opensearch_ml_stream.plugin.extension import Extension

MESSAGES_PATH = "/v1/messages"
COUNT_TOKENS_PATH = MESSAGES_PATH + "/count_tokens"


EXTENSION = Extension(
    name="anthropic_api",
    summary="Anthropic's Messages API on every model, for its SDKs and compatible clients: /v1/messages.",
    open="opensearch_ml_stream.extensions.anthropic_api.opening:open_anthropic_api",
    paths=(MESSAGES_PATH,),
    error_form="opensearch_ml_stream.extensions.anthropic_api.protocol.errors:error_body",
)
