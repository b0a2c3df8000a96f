"""Parts of a conversation, as what providers have in common takes them: texts, data URLs, arguments, results."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from opensearch_ml_stream.connectors.conversation.conversation import (
    AnswerFormat,
    Call,
    Conversation,
    JSONObject,
    Media,
    Part,
    Reasoning,
    Result,
    Text,
    Turn,
)
from opensearch_ml_stream.connectors.conversation.dialect import Refuse
from opensearch_ml_stream.connectors.conversation.dialects.alternating_turns import refuse_part
from opensearch_ml_stream.connectors.syntax import provider_json

SYSTEM_ROLES = ("system", "developer")

_TYPES_BY_ENDING = {
    "gif": "image/gif",
    "heic": "image/heic",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "png": "image/png",
    "webp": "image/webp",
    "flac": "audio/flac",
    "mp3": "audio/mpeg",
    "ogg": "audio/ogg",
    "wav": "audio/wav",
    "pdf": "application/pdf",
    "txt": "text/plain",
}


def refuse_details(conversation: Conversation, refuse: Refuse) -> None:
    """Refuse the wished resolution of images, for a provider that has no choice of it."""
    parts = (part for turn in conversation.turns for part in turn.parts)
    if any(isinstance(part, Media) and part.detail not in ("", "auto") for part in parts):
        refuse_part(conversation, refuse, "detail", "the provider has no choice of the resolution of an image")


def system_texts(conversation: Conversation, refuse: Refuse) -> list[str]:
    """Return the texts of all system turns, for a provider that takes them in one place, before the conversation."""
    turns = [turn for turn in conversation.turns if turn.role in SYSTEM_ROLES]
    return [text for turn in turns for text in texts(turn.parts, conversation, refuse)]


def texts(parts: Iterable[Part], conversation: Conversation, refuse: Refuse) -> list[str]:
    """Return the texts of parts, those of documents of plain text with them; refuse what is no text."""
    found = []
    for part in parts:
        if isinstance(part, Text) or (isinstance(part, Media) and part.text):
            found.append(part.text)
        elif isinstance(part, Media):
            refuse_part(conversation, refuse, part.kind, "the provider takes text alone here")
    return found


def tool_names(conversation: Conversation) -> dict[str, str]:
    """Return the names of the tools by the ids of their calls."""
    parts = (part for turn in conversation.turns for part in turn.parts)
    return {part.id: part.name for part in parts if isinstance(part, Call)}


def parse_arguments(call: Call) -> JSONObject | None:
    """Return the arguments of a call, {} for an empty text, None if they are no JSON object."""
    try:
        read: Any = provider_json.loads(call.arguments.encode() or b"{}")
    except ValueError:
        return None
    return read if isinstance(read, dict) else None


def arguments(call: Call, conversation: Conversation, refuse: Refuse) -> JSONObject:
    """Return the arguments of a call as the object that they are; refuse what is none."""
    if (read := parse_arguments(call)) is not None:
        return read
    refuse_part(conversation, refuse, "arguments", "the arguments of a tool call must be a JSON object")
    return {}


def result_text(result: Result, conversation: Conversation, refuse: Refuse) -> str:
    """Return the text of a result, for a provider that must be told of a failure in it."""
    text = "\n".join(texts(result.parts, conversation, refuse))
    return f"Error: {text}" if result.is_error else text


def messages_of(turn: Turn) -> Iterator[Result | tuple[Part, ...]]:
    """Yield the results of a turn, and what stands between them, for a provider whose results are messages."""
    for is_result, parts in groupby(turn.parts, lambda part: isinstance(part, Result)):
        if is_result:
            yield from (part for part in parts if isinstance(part, Result))
        else:
            yield tuple(parts)


def reasoning_text(parts: Iterable[Part]) -> str:
    """Return the reasoning of an answer as far as it has no proof: one with a proof is another provider's."""
    return "".join(part.text for part in parts if isinstance(part, Reasoning) and not part.signature)


def media_type(media: Media) -> str:
    """Return the type of a medium, by the end of its URL where it is not said; "" where it is not known."""
    path = media.url.partition("?")[0].partition("#")[0]
    return media.media_type or _TYPES_BY_ENDING.get(path.rpartition(".")[2].lower(), "")


def data_url(media: Media) -> str:
    """Return the URL of a medium, one that holds its data where it came with them; "" where neither makes one."""
    if not media.data:
        return media.url
    return f"data:{media.media_type};base64,{media.data}" if media.media_type else ""


def schema(answer_format: AnswerFormat) -> JSONObject | None:
    """Return the schema of the answer, with the format's description where the schema has none."""
    if answer_format.schema is None or not answer_format.description:
        return answer_format.schema
    return {"description": answer_format.description, **answer_format.schema}
