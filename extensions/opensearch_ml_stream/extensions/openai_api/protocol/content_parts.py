"""The parts of a message's content: texts, images, sounds and files."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from opensearch_ml_stream.connectors.conversation.conversation import Media, Text
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.extensions.openai_api.protocol.request_members import Members

_AUDIO_TYPES = {"mp3": "audio/mpeg", "wav": "audio/wav"}
_FILE_TYPES = {
    "csv": "text/csv",
    "html": "text/html",
    "json": "application/json",
    "md": "text/markdown",
    "pdf": "application/pdf",
    "txt": "text/plain",
}  # by the suffix of a file's name, if nothing else says its type
_BASE64 = ";base64"
_TEXTS = {"input_text": "text", "output_text": "text", "refusal": "refusal", "text": "text"}
_OF_OUTPUT = ("annotations", "logprobs")  # members of answers that change nothing when they are sent back


def read_content(value: Any, path: str, unknown: dict[str, Any]) -> list[Text | Media]:
    """Return the parts of a chat message's content: a string, or an array of parts.

    Those of types that are not known here go to `unknown`, by their paths.
    """
    return _read_parts(value, path, unknown, _read_part)


def read_item_content(value: Any, path: str, unknown: dict[str, Any]) -> list[Text | Media]:
    """Return the parts of the content that an item has, in the form of the Responses API."""
    return _read_parts(value, path, unknown, _read_item_part)


def _read_parts(
    value: Any, path: str, unknown: dict[str, Any], read: Callable[[Any, str, dict[str, Any]], Text | Media | None]
) -> list[Text | Media]:
    if isinstance(value, str):
        return [Text(value)]
    if not isinstance(value, list):
        raise InvalidRequest(f"{path} must be a string or an array of parts")
    parts = [read(part, f"{path}[{place}]", unknown) for place, part in enumerate(value)]
    return [part for part in parts if part is not None]


def _read_data_url(url: str, path: str) -> tuple[str, str]:
    """Return media type and base64 of a `data:` URL."""
    head, comma, data = url.removeprefix("data:").partition(",")
    if not comma or not head.endswith(_BASE64):
        raise InvalidRequest(f"{path} must be a URL, or data:TYPE;base64,DATA")
    return head.removesuffix(_BASE64).partition(";")[0].lower(), data


def _read_file(members: Members) -> Media:
    """Return the file of `{"file_data", "file_id", "filename"}`."""
    name = members.take("filename", str) or ""
    file_id, data = members.take("file_id", str), members.take("file_data", str)
    if file_id:
        return Media("file", file_id=file_id, name=name)
    if not data:
        raise InvalidRequest(f"{members.path('file_data')} is missing: it must be a string")
    media_type = _FILE_TYPES.get(name.rpartition(".")[2].lower(), "")
    if data.startswith("data:"):
        url_type, data = _read_data_url(data, members.path("file_data"))
        media_type = url_type or media_type
    return Media("file", media_type, data, name=name)


def _image_at(url: str, path: str, detail: str) -> Media:
    """Return the image at a URL, which may hold it."""
    if not url.startswith("data:"):
        return Media("image", url=url, detail=detail)
    media_type, data = _read_data_url(url, path)
    return Media("image", media_type, data, detail=detail)


def _read_part(value: Any, path: str, unknown: dict[str, Any]) -> Text | Media | None:
    members = Members(value, path)
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
    return _image_at(url, members.path("url"), members.take("detail", str) or "")


def _read_audio(members: Members) -> Media:
    """Return the sound of `{"data", "format"}`."""
    form = members.need("format", str)
    return Media("audio", _AUDIO_TYPES.get(form, f"audio/{form}"), members.need("data", str))


_MEDIA = {"image_url": _read_image_url, "input_audio": _read_audio, "file": _read_file}


def _read_item_part(value: Any, path: str, unknown: dict[str, Any]) -> Text | Media | None:
    members = Members(value, path)
    kind = members.need("type", str)
    part: Text | Media
    if kind in _TEXTS:
        members.drop(*_OF_OUTPUT)
        part = Text(members.need(_TEXTS[kind], str))
    elif kind == "input_image":
        part = _read_input_image(members)
    elif kind == "input_file" and (url := members.take("file_url", str)):
        part = Media("file", url=url, name=members.take("filename", str) or "")
    elif kind == "input_file":
        part = _read_file(members)
    elif kind == "input_audio":
        part = _read_audio(Members(members.take_any("input_audio"), members.path("input_audio")))
    else:
        unknown[path] = value
        return None
    unknown.update(members.unread())
    return part


def _read_input_image(members: Members) -> Media:
    detail = members.take("detail", str) or ""
    if file_id := members.take("file_id", str):
        return Media("image", file_id=file_id, detail=detail)
    return _image_at(members.need("image_url", str), members.path("image_url"), detail)
