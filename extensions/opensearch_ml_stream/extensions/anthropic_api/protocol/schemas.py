"""Schemas of what Anthropic's API sends: the types of the members that clients rely on."""

from typing import Annotated, Any, ClassVar, Literal

import msgspec

Count = Annotated[int, msgspec.Meta(ge=0)]
Name = Annotated[str, msgspec.Meta(min_length=1)]
# The blocks of server tools, of which there are new ones time and again, have types of this form.
_BLOCK_TYPES = r"^(text|thinking|redacted_thinking|container_upload|compaction|fallback|([a-z_]+_)?tool_[a-z_]+)$"
StopReason = Literal[
    "end_turn", "max_tokens", "stop_sequence", "tool_use", "pause_turn", "refusal", "compaction",
    "model_context_window_exceeded",
]  # fmt: skip


class _Form(msgspec.Struct, kw_only=True, gc=False):
    """An object whose members must have these types; it may have others."""


class MessageUsage(_Form):
    """Counts of tokens."""

    input_tokens: Count
    output_tokens: Count
    cache_creation_input_tokens: Count | None = None
    cache_read_input_tokens: Count | None = None


class _EndUsage(_Form):
    output_tokens: Count
    input_tokens: Count | None = None
    cache_creation_input_tokens: Count | None = None
    cache_read_input_tokens: Count | None = None


class Block(_Form):
    """A block of a message."""

    type: Annotated[str, msgspec.Meta(pattern=_BLOCK_TYPES)]
    text: str | msgspec.UnsetType = msgspec.UNSET
    thinking: str | msgspec.UnsetType = msgspec.UNSET
    id: Name | msgspec.UnsetType = msgspec.UNSET
    name: Name | msgspec.UnsetType = msgspec.UNSET
    input: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET

    @property
    def is_whole(self) -> bool:
        """Whether it has the members that its type needs."""
        if self.type == "tool_use":
            return msgspec.UNSET not in (self.id, self.name, self.input)
        return self.type not in ("text", "thinking") or getattr(self, self.type) is not msgspec.UNSET


class Message(_Form):
    """A whole message."""

    id: Name
    type: Literal["message"]
    role: Literal["assistant"]
    model: str
    content: list[Block]
    stop_reason: StopReason
    usage: MessageUsage


class _BegunMessage(_Form):
    id: Name
    type: Literal["message"]
    role: Literal["assistant"]
    model: str
    content: list[Block]
    usage: MessageUsage
    stop_reason: StopReason | None = None


class _TextDelta(_Form, tag_field="type", tag="text_delta"):
    block: ClassVar[str] = "text"
    text: str


class _CitationsDelta(_Form, tag_field="type", tag="citations_delta"):
    block: ClassVar[str] = "text"
    citation: dict[str, Any]


class _ThinkingDelta(_Form, tag_field="type", tag="thinking_delta"):
    block: ClassVar[str] = "thinking"
    thinking: str


class _SignatureDelta(_Form, tag_field="type", tag="signature_delta"):
    block: ClassVar[str] = "thinking"
    signature: str


class _InputDelta(_Form, tag_field="type", tag="input_json_delta"):
    block: ClassVar[str] = "tool_use"
    partial_json: str


class _CompactionDelta(_Form, tag_field="type", tag="compaction_delta"):
    block: ClassVar[str] = "compaction"


class _End(_Form):
    stop_reason: StopReason
    stop_sequence: str | None = None


class MessageStart(_Form, tag_field="type", tag="message_start"):
    """The first event."""

    message: _BegunMessage


class BlockStart(_Form, tag_field="type", tag="content_block_start"):
    """The event that opens a block."""

    index: Count
    content_block: Block


class BlockDelta(_Form, tag_field="type", tag="content_block_delta"):
    """An addition to the open block."""

    index: Count
    delta: _TextDelta | _CitationsDelta | _ThinkingDelta | _SignatureDelta | _InputDelta | _CompactionDelta


class BlockStop(_Form, tag_field="type", tag="content_block_stop"):
    """The end of a block."""

    index: Count


class MessageDelta(_Form, tag_field="type", tag="message_delta"):
    """The end of the message, with its stop reason."""

    delta: _End
    usage: _EndUsage


SENT_EVENT = MessageStart | BlockStart | BlockDelta | BlockStop | MessageDelta


def is_of(value: Any, form: Any) -> bool:
    """Return whether a value fits a schema."""
    try:
        msgspec.convert(value, form)
    except msgspec.ValidationError:
        return False
    return True
