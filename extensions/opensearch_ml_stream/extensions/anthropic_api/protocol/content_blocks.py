"""Content blocks of a request, as the parts of a conversation.

Blocks that only Anthropic's own tools make, and members that have no place in a part, are noted as unknown.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from opensearch_ml_stream.connectors.conversation.conversation import Call, Media, Part, Reasoning, Result, Text
from opensearch_ml_stream.connectors.syntax.compact_json import to_json
from opensearch_ml_stream.extensions.anthropic_api.protocol.body_members import Members, wrong

_TYPE = "Input should be a string or a list of content blocks"


class ContentBlocks:
    """Reads the content of a request's messages in their order: a result has the name that its call had."""

    def __init__(self, unknown: dict[str, Any]) -> None:
        self._unknown = unknown
        self._names: dict[str, str] = {}  # of the tools that were called, by the ids of the calls
        self._readers: dict[str, Callable[[Members], tuple[Part, ...]]] = {
            "text": self._text,
            "image": self._image,
            "document": self._document,
            "thinking": self._thinking,
            "redacted_thinking": self._redacted_thinking,
            "tool_use": self._call,
            "tool_result": self._result,
        }

    def read(self, content: Any, path: str) -> tuple[Part, ...]:
        """Return the parts of a content: a text, or a list of blocks."""
        if isinstance(content, str):
            return (Text(content),)
        if not isinstance(content, list):
            raise wrong(path, _TYPE)
        return tuple(part for place, block in enumerate(content) for part in self._block(block, f"{path}.{place}"))

    def _block(self, value: Any, path: str) -> tuple[Part, ...]:
        block = Members(value, path)
        kind = block.required_text("type")
        reader = self._readers.get(kind)
        if reader is None:
            self._unknown[path] = value
            return ()
        parts = reader(block)
        block.leave(self._unknown)
        return parts

    def _text(self, block: Members) -> tuple[Part, ...]:
        return (Text(block.required_text("text"), block.object("cache_control")),)

    def _image(self, block: Members) -> tuple[Part, ...]:
        return (self._media(block, Media("image", cache=block.object("cache_control"))),)

    def _document(self, block: Members) -> tuple[Part, ...]:
        name, cache = block.text("title"), block.object("cache_control")
        citations = block.object("citations")
        if citations is not None and citations.get("enabled"):
            self._unknown[block.path_of("citations")] = citations
        document = Media("file", name=name, cache=cache)
        source = block.object("source")
        if source is None or source.get("type") != "content":
            return (self._media(block, document, source),)
        members = Members(source, block.path_of("source"))
        members.take("type")
        inner = self._texts_and_media(members.take("content"), members.path_of("content"))
        members.leave(self._unknown)
        texts = [part.text for part in inner if isinstance(part, Text)]
        if len(texts) == len(inner):
            return (replace(document, media_type="text/plain", text="\n".join(texts)),)
        title = (Text(name),) if name else ()
        return (*title, *inner[:-1], replace(inner[-1], cache=cache or inner[-1].cache))

    def _media(self, block: Members, media: Media, source_value: Any = None) -> Media:
        """Return the image or document with what its source holds."""
        source = Members(block.required("source") if source_value is None else source_value, block.path_of("source"))
        kind = source.required_text("type")
        if kind == "base64":
            media = replace(media, media_type=source.required_text("media_type"), data=source.required_text("data"))
        elif kind == "url":
            media_type = "application/pdf" if media.kind == "file" else ""
            media = replace(media, media_type=media_type, url=source.required_text("url"))
        elif kind == "file":
            media = replace(media, file_id=source.required_text("file_id"))
        elif kind == "text" and media.kind == "file":
            source.take("media_type")  # there is one alone
            media = replace(media, media_type="text/plain", text=source.required_text("data"))
        else:
            raise wrong(source.path_of("type"), f"Input should be a type of source that {media.kind}s have")
        source.leave(self._unknown)
        return media

    def _thinking(self, block: Members) -> tuple[Part, ...]:
        return (Reasoning(block.text("thinking"), block.text("signature")),)

    def _redacted_thinking(self, block: Members) -> tuple[Part, ...]:
        return (Reasoning(encrypted=block.required_text("data")),)

    def _call(self, block: Members) -> tuple[Part, ...]:
        id, name = block.required_text("id"), block.required_text("name")
        self._names[id] = name
        if block.object("caller") not in (None, {"type": "direct"}):
            self._unknown[block.path_of("caller")] = True
        arguments = to_json(block.object("input") or {}).decode()
        return (Call(id, name, arguments, block.object("cache_control")),)

    def _result(self, block: Members) -> tuple[Part, ...]:
        id = block.required_text("tool_use_id")
        content = block.take("content")
        parts = () if content is None else self._texts_and_media(content, block.path_of("content"))
        is_error, cache = bool(block.flag("is_error")), block.object("cache_control")
        return (Result(id, parts, self._names.get(id, ""), is_error, cache),)

    def _texts_and_media(self, content: Any, path: str) -> tuple[Text | Media, ...]:
        parts = self.read(content, path)
        found = tuple(part for part in parts if isinstance(part, Text | Media))
        if len(found) != len(parts):
            raise wrong(path, "Input should be texts, images and documents")
        return found
