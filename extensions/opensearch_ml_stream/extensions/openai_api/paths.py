"""Where the routes of OpenAI's API stand."""

CHAT_PATH = "/v1/chat/completions"
COMPLETIONS_PATH = "/v1/completions"
EMBEDDINGS_PATH = "/v1/embeddings"
MODELS_PATH = "/v1/models"
RESPONSES_PATH = "/v1/responses"
INPUT_TOKENS_PATH = RESPONSES_PATH + "/input_tokens"

BEGINNINGS = ("/v1/chat", COMPLETIONS_PATH, EMBEDDINGS_PATH, MODELS_PATH, RESPONSES_PATH)
"""How the paths of this API begin."""
