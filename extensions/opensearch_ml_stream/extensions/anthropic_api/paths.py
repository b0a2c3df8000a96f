"""Where the routes of the Messages API stand."""

MESSAGES_PATH = "/v1/messages"
COUNT_TOKENS_PATH = MESSAGES_PATH + "/count_tokens"
