"""Schemas of what OpenAI's API sends: the types of the members that clients rely on."""

from typing import Annotated, Any, Literal

import msgspec

MAX_CHOICES = 128  # OpenAI's limit of `n`
_Place = Annotated[int, msgspec.Meta(ge=0, lt=MAX_CHOICES)]
_Count = Annotated[int, msgspec.Meta(ge=0)]
Name = Annotated[str, msgspec.Meta(min_length=1)]
_Finish = Literal["stop", "length", "tool_calls", "content_filter", "function_call"]
_TextFinish = Literal["stop", "length", "content_filter"]
Role = Literal["assistant", "developer", "system", "user", "tool"]
CallType = Literal["function", "custom"]


class _Form(msgspec.Struct, kw_only=True, gc=False):
    """An object whose members must have these types; it may have others."""


class Function(_Form):
    """A fragment of a call of a function."""

    name: Name | None = None
    arguments: str | None = None


class Custom(_Form):
    """A fragment of a call of a custom tool."""

    name: Name | None = None
    input: str | None = None


class Call(_Form):
    """A fragment of a call."""

    index: int
    id: Name | None = None
    type: CallType | msgspec.UnsetType = msgspec.UNSET  # null would clear the type that the client has
    function: Function | None = None
    custom: Custom | None = None


class Delta(_Form):
    """The addition of a chunk to a choice of a chat."""

    role: Role | None = None
    content: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[Call] | None = None
    function_call: Function | None = None


class Token(_Form):
    """A token and how likely it was."""

    token: str
    logprob: float | None = None
    top_logprobs: list[Any] | None = None


class Logprobs(_Form):
    """The tokens of a chat's choice."""

    content: list[Token] | None = None
    refusal: list[Token] | None = None


class _Choice(_Form):
    delta: Delta
    finish_reason: _Finish | None = None
    logprobs: Logprobs | None = None


class Choice(_Choice, kw_only=True):
    """A choice in a chunk of a chat."""

    index: _Place


class _Choice0(_Choice, kw_only=True):
    index: Literal[0]


class TextLogprobs(_Form):
    """The tokens of a text."""

    tokens: list[str] | None = None
    token_logprobs: list[float | None] | None = None
    top_logprobs: list[dict[str, float | None] | None] | None = None
    text_offset: list[int] | None = None


class _TextChoice(_Form):
    text: str
    finish_reason: _TextFinish | None = None
    logprobs: TextLogprobs | None = None


class TextChoice(_TextChoice, kw_only=True):
    """A choice in a chunk of a text."""

    index: _Place


class _TextChoice0(_TextChoice, kw_only=True):
    index: Literal[0]


class Details(_Form):
    """Counts of parts of the tokens."""

    cached_tokens: _Count | None = None
    cache_write_tokens: _Count | None = None
    audio_tokens: _Count | None = None
    reasoning_tokens: _Count | None = None
    accepted_prediction_tokens: _Count | None = None
    rejected_prediction_tokens: _Count | None = None


class Usage(_Form):
    """Counts of tokens."""

    prompt_tokens: _Count
    completion_tokens: _Count
    total_tokens: _Count
    prompt_tokens_details: Details | None = None
    completion_tokens_details: Details | None = None


class _Chunk(_Form):
    id: str
    created: int
    model: str
    usage: Usage | None = None


class ChatChunk(_Chunk, kw_only=True):
    """A chunk of a chat with choice 0 alone, or none."""

    object: Literal["chat.completion.chunk"]
    choices: Annotated[list[_Choice0], msgspec.Meta(max_length=1)]


class TextChunk(_Chunk, kw_only=True):
    """A chunk of a text with choice 0 alone, or none."""

    object: Literal["text_completion"]
    choices: Annotated[list[_TextChoice0], msgspec.Meta(max_length=1)]


class WholeFunction(_Form):
    """A call of a function."""

    name: Name
    arguments: Name


class WholeCall(_Form):
    """A call."""

    id: Name
    type: CallType
    function: WholeFunction | None = None
    custom: Custom | None = None


class Message(_Form):
    """The model's message."""

    role: Literal["assistant"]
    content: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[WholeCall] | None = None
    function_call: WholeFunction | None = None


class WholeChoice(_Form):
    """A choice of a whole chat."""

    index: _Place
    message: Message
    finish_reason: _Finish
    logprobs: Logprobs | None = None


class WholeTextChoice(_Form):
    """A choice of a whole text."""

    index: _Place
    text: str
    finish_reason: _TextFinish
    logprobs: TextLogprobs | None = None


class ResponseUsage(_Form):
    """Counts of tokens of a response."""

    input_tokens: _Count
    output_tokens: _Count
    total_tokens: _Count


def is_of(value: Any, form: Any) -> bool:
    """Return whether a value fits a schema."""
    try:
        msgspec.convert(value, form)
    except msgspec.ValidationError:
        return False
    return True
