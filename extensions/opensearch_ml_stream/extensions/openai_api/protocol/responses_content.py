"""The parts of an item's content: texts, images, sounds and files, in the form that the Responses API has for them."""

from typing import Any

from opensearch_ml_stream.connectors.conversation.conversation import Media, Text
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.extensions.openai_api.protocol.content_parts import read_audio, read_file, read_image
from opensearch_ml_stream.extensions.openai_api.protocol.members import Members

_TEXTS = {"input_text": "text", "output_text": "text", "refusal": "refusal", "text": "text"}
_OF_OUTPUT = ("annotations", "logprobs")  # of an answer, which ask for nothing when they are sent back


def read_item_content(value: Any, path: str, unknown: dict[str, Any]) -> list[Text | Media]:
    """Return the parts of a content: a string, or an array of parts.

    Those of types that are not known here go to `unknown`, by their paths.
    """
    if isinstance(value, str):
        return [Text(value)]
    if not isinstance(value, list):
        raise InvalidRequest(f"{path} must be a string or an array of parts")
    parts: list[Text | Media] = []
    for place, inner in enumerate(value):
        members = Members(inner, f"{path}[{place}]")
        part = _read_part(members, members.need("type", str))
        if part is None:
            unknown[f"{path}[{place}]"] = inner
        else:
            parts.append(part)
            unknown.update(members.unread())
    return parts


def _read_part(members: Members, kind: str) -> Text | Media | None:
    if kind in _TEXTS:
        members.drop(*_OF_OUTPUT)
        return Text(members.need(_TEXTS[kind], str))
    if kind == "input_image":
        return _read_image(members)
    if kind == "input_file":
        if url := members.take("file_url", str):
            return Media("file", url=url, name=members.take("filename", str) or "")
        return read_file(members)
    if kind == "input_audio":
        return read_audio(Members(members.take_any("input_audio"), members.path("input_audio")))
    return None


def _read_image(members: Members) -> Media:
    detail = members.take("detail", str) or ""
    if file_id := members.take("file_id", str):
        return Media("image", file_id=file_id, detail=detail)
    return read_image(members.need("image_url", str), members.path("image_url"), detail)
