"""Read the body of `/v1/completions`, the text interface before chat, as a conversation of one turn.

https://platform.openai.com/docs/api-reference/completions/create
"""

from typing import Any

from opensearch_ml_stream.connectors.conversation.conversation import Conversation, JSONObject, Text, Turn
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.extensions.openai_api.protocol.chat_request import (
    SAMPLING,
    read_options,
)
from opensearch_ml_stream.extensions.openai_api.protocol.members import Members


def read_completions_request(body: JSONObject) -> Conversation:
    """Return the conversation of a body; InvalidRequest names the member that is wrong."""
    members = Members(body)
    names = {"turns": "prompt"}
    prompt = _read_prompt(members.take_any("prompt"))
    options = read_options(members, SAMPLING, names)
    if (logprobs := members.take("logprobs", int)) is not None:
        options |= {"logprobs": True, "top_logprobs": logprobs}
        names["top_logprobs"] = "logprobs"
    turns = (Turn("user", (Text(prompt),)),)
    return Conversation(turns, options=options, unknown=members.unread(), members=names)


def _read_prompt(value: Any) -> str:
    prompts = value if isinstance(value, list) else [value]
    if len(prompts) > 1 and all(isinstance(one, str) for one in prompts):
        raise InvalidRequest(f"prompt must be one text for this model; the request has {len(prompts)}")
    if len(prompts) != 1 or not isinstance(prompts[0], str):
        raise InvalidRequest("prompt must be a string; this model does not take arrays of tokens")
    return prompts[0]
