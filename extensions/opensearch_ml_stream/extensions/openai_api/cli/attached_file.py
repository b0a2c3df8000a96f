"""A file that is attached to a question, as a part of the message's content."""

from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from opensearch_ml_stream.plugin.cli.command_errors import WrongUsage

_IMAGE_TYPES = {
    ".gif": "image/gif",
    ".jpeg": "image/jpeg",
    ".jpg": "image/jpeg",
    ".png": "image/png",
    ".webp": "image/webp",
}
_MAX_BYTES = 7 * 2**20  # base64 adds a third, and a request's body may have 10 MiB


def read_attachment(path: Path) -> Mapping[str, Any]:
    """Return the part for an image, a PDF or a text, by the suffix of the name.

    WrongUsage for another file, one over 7 MiB, or one that cannot be read.
    """
    data = _read(path)
    ending = path.suffix.lower()
    if ending in _IMAGE_TYPES:
        return {"type": "image_url", "image_url": {"url": _data_url(_IMAGE_TYPES[ending], data)}}
    if ending == ".pdf":
        return {"type": "file", "file": {"filename": path.name, "file_data": _data_url("application/pdf", data)}}
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise WrongUsage(f"{path} is neither an image ({', '.join(sorted(_IMAGE_TYPES))}), a .pdf, nor a text in UTF-8")
    return {"type": "text", "text": f"{path.name}:\n\n{text}"}


def _read(path: Path) -> bytes:
    try:
        if not path.expanduser().is_file():
            raise WrongUsage(f"{path} is no file")
        with path.expanduser().open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise WrongUsage(f"{path} cannot be read ({error.strerror})") from error
    if len(data) > _MAX_BYTES:
        raise WrongUsage(f"{path} has more than {_MAX_BYTES // 2**20} MiB, which is the most that can be attached")
    return data


def _data_url(media_type: str, data: bytes) -> str:
    return f"data:{media_type};base64,{b64encode(data).decode()}"
