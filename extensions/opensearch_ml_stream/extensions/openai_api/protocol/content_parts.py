"""The parts of a message's content: texts, images, sounds and files."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from opensearch_ml_stream.connectors.conversation.conversation import Media, Text
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.extensions.openai_api.protocol.members import Members

_AUDIO_TYPES = {"mp3": "audio/mpeg", "wav": "audio/wav"}
_FILE_TYPES = {
    "csv": "text/csv",
    "html": "text/html",
    "json": "application/json",
    "md": "text/markdown",
    "pdf": "application/pdf",
    "txt": "text/plain",
}  # by the end of a file's name, where nothing else says its type
_BASE64 = ";base64"


def read_content(value: Any, path: str, unknown: dict[str, Any]) -> list[Text | Media]:
    """Return the parts of a content: a string, or an array of parts.

    Those of types that are not known here go to `unknown`, by their paths.
    """
    if isinstance(value, str):
        return [Text(value)]
    if not isinstance(value, list):
        raise InvalidRequest(f"{path} must be a string or an array of parts")
    parts = [_read_part(Members(part, f"{path}[{place}]"), unknown) for place, part in enumerate(value)]
    return [part for part in parts if part is not None]


def read_data_url(url: str, path: str) -> tuple[str, str]:
    """Return media type and base64 of a `data:` URL."""
    head, comma, data = url.removeprefix("data:").partition(",")
    if not comma or not head.endswith(_BASE64):
        raise InvalidRequest(f"{path} must be a URL, or data:TYPE;base64,DATA")
    return head.removesuffix(_BASE64).partition(";")[0].lower(), data


def read_file(members: Members) -> Media:
    """Return the file of `{"file_data", "file_id", "filename"}`."""
    name = members.take("filename", str) or ""
    file_id, data = members.take("file_id", str), members.take("file_data", str)
    if file_id:
        return Media("file", file_id=file_id, name=name)
    if not data:
        raise InvalidRequest(f"{members.path('file_data')} is missing: it must be a string")
    media_type = _FILE_TYPES.get(name.rpartition(".")[2].lower(), "")
    if data.startswith("data:"):
        said, data = read_data_url(data, members.path("file_data"))
        media_type = said or media_type
    return Media("file", media_type, data, name=name)


def read_image(url: str, path: str, detail: str) -> Media:
    """Return the image at a URL, which may hold it."""
    if not url.startswith("data:"):
        return Media("image", url=url, detail=detail)
    media_type, data = read_data_url(url, path)
    return Media("image", media_type, data, detail=detail)


def _read_part(members: Members, unknown: dict[str, Any]) -> Text | Media | None:
    kind = members.need("type", str)
    cache: Mapping[str, Any] | None = members.take("cache_control", dict)
    part: Text | Media
    if kind in ("text", "refusal"):
        part = Text(members.need(kind, str), cache)
    elif kind in _MEDIA:
        inner = members.take_any(kind)
        if kind == "image_url" and isinstance(inner, str):  # as older clients have it
            inner = {"url": inner}
        holder = Members(inner, members.path(kind))
        part = replace(_MEDIA[kind](holder), cache=cache)
        unknown.update(holder.unread())
    else:
        body = members.take_any(kind)
        unknown[members.path(kind)] = True if body is None else body
        return None
    unknown.update(members.unread())
    return part


def _read_image_url(members: Members) -> Media:
    url = members.need("url", str)
    return read_image(url, members.path("url"), members.take("detail", str) or "")


def read_audio(members: Members) -> Media:
    """Return the sound of `{"data", "format"}`."""
    form = members.need("format", str)
    return Media("audio", _AUDIO_TYPES.get(form, f"audio/{form}"), members.need("data", str))


_MEDIA = {"image_url": _read_image_url, "input_audio": read_audio, "file": read_file}
