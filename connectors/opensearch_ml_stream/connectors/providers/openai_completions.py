"""OpenAI completions, the text interface before chat, as vLLM, SGLang and llama.cpp offer it too.

https://platform.openai.com/docs/api-reference/completions. It takes one text, so only a conversation of one text of the
user can be sent.
"""

from functools import partial
from typing import Any

from opensearch_ml_stream.connectors.chunks import Chunk
from opensearch_ml_stream.connectors.conversation.conversation import Conversation, Text
from opensearch_ml_stream.connectors.conversation.dialect import OPENAI_COMPLETIONS as DIALECT_NAME
from opensearch_ml_stream.connectors.conversation.dialect import Dialect, Refuse
from opensearch_ml_stream.connectors.conversation.dialects.openai_as_sent import ChooseChoices
from opensearch_ml_stream.connectors.decoding import event_fields
from opensearch_ml_stream.connectors.decoding.sse import SSEFraming
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.provider import Interface, Provider
from opensearch_ml_stream.connectors.providers.openai_chat import OpenAIChat
from opensearch_ml_stream.connectors.stream_spec import Enable, StreamSpec


class OpenAICompletions(OpenAIChat):
    """Reads choice 0 of `text_completion` events, which differ from those of chat only in where the text is."""

    __slots__ = ()

    def _read_choice(self, choice: dict[str, Any], chunks: list[Chunk]) -> None:
        if text := event_fields.text(choice.get("text")):
            chunks.append(Chunk(text))


_OPTIONS = (
    "max_tokens", "temperature", "top_p", "top_k", "min_p", "stop", "seed", "presence_penalty", "frequency_penalty",
    "logit_bias", "n", "user",
)  # fmt: skip
_LEFT_OUT = frozenset({"reasoning_summary"})  # as in chat
_NEEDS_CHAT = "the model takes one text, not a conversation"


def _write(conversation: Conversation, refuse: Refuse) -> dict[str, Any]:
    """Return the body of a conversation."""
    options = conversation.options
    for member in conversation.unknown:
        refuse(member)
    asked = {
        "tools": conversation.tools,
        "tool_choice": conversation.tool_choice if conversation.tools else None,
        "answer_format": conversation.answer_format,
    }
    for name in (name for name, value in asked.items() if value):
        refuse(conversation.member(name), _NEEDS_CHAT)
    for name, value in options.items():
        if name not in (*_OPTIONS, "logprobs", "top_logprobs", *_LEFT_OUT) and not _asks_nothing(name, value):
            refuse(conversation.member(name))
    body = {"prompt": _prompt(conversation), **{name: options[name] for name in _OPTIONS if name in options}}
    if options.get("logprobs"):
        body["logprobs"] = options.get("top_logprobs", 0)
    return body


def _asks_nothing(name: str, value: Any) -> bool:
    return (name, value) in (("modalities", ["text"]), ("reasoning_tokens", 0), ("reasoning_effort", "none"))


def _prompt(conversation: Conversation) -> str:
    turns = conversation.turns
    texts = [part.text for turn in turns for part in turn.parts if isinstance(part, Text)]
    if len(turns) != 1 or turns[0].role != "user" or turns[0].name or len(texts) != len(turns[0].parts):
        place = conversation.members.get("turns", "messages")
        raise InvalidRequest(f"[{place}] is not one text of the user's: {_NEEDS_CHAT}")
    return "\n".join(texts)


DIALECT = Dialect(DIALECT_NAME, _write, turns=("prompt",), as_sent=partial(ChooseChoices, text="text"))
"""Of servers of completions."""


OPENAI_COMPLETIONS = StreamSpec(
    name="openai/v1/completions",
    enable=Enable(body={"stream": True, "stream_options": {"include_usage": True}}),
    framing=SSEFraming,
    reader=OpenAICompletions,
    has_fast_path=True,
)

PROVIDER = Provider(
    interfaces=(Interface((OPENAI_COMPLETIONS.name,), OPENAI_COMPLETIONS, (r"/completions\?",), dialect=DIALECT),)
)
