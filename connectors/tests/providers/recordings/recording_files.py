"""Streams that public SDKs and frameworks recorded, one file each: what it means, a line of `---`, its bytes.

The head is YAML:

    preset     how the stream is read
    source     repository and path of the recording that it follows
    shows      what it is here for
    text, reasoning, tools ([id, name, arguments] each), finish, native, usage, model
    error      instead of an ending: status and part of the reason, or `truncated`
    sdk        why the provider's SDK says something else about it

Event names, order and spelling of fields, kinds of ids, white space and cuts are those of the recording; texts, ids and
names are not. Files that end in `.frames` hold one AWS frame a line, its name and its payload, and become frames here;
those that end in `.body` are whole responses, as a server gives them that does not stream.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from opensearch_ml_stream.connectors.decoding.decoder import Decoder, FastPathDecoder
from opensearch_ml_stream.connectors.known_providers import SHIPPED
from tests.providers.eventstream_frames import event, invoke_chunk
from tests.providers.recorded_streams import tool

_FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Recording:
    """A recorded stream and its meaning. `provider` is the folder it lies in."""

    name: str
    provider: str
    data: bytes
    preset: str
    source: str
    shows: str
    text: str = ""
    reasoning: str = ""
    tools: list[tuple[str | None, str, str]] = field(default_factory=list)
    finish: str = "stop"
    native: str | None = None
    usage: dict[str, int] | None = None
    model: str | None = None
    error: dict[str, Any] | str | None = None
    sdk: str | None = None

    def decoder(self) -> Decoder | FastPathDecoder:
        return SHIPPED.presets[self.preset].decoder()

    def tool_calls(self) -> list[dict[str, Any]]:
        return [tool(*call) for call in self.tools]


def _read(file: Path) -> Recording:
    head, _, body = file.read_bytes().partition(b"\n---\n")
    meaning = yaml.safe_load(head)
    data = _frames(body, meaning["preset"]) if file.suffix == ".frames" else body
    return Recording(f"{file.parent.name}/{file.stem}", file.parent.name, data, **meaning)


def _frames(body: bytes, preset: str) -> bytes:
    lines = (line.partition(b" ") for line in body.splitlines())
    return b"".join(
        invoke_chunk(payload) if preset == "bedrock/invoke" else event(name.decode(), payload)
        for name, _, payload in lines
    )


_FILES = [file for file in sorted(_FOLDER.glob("*/*.*")) if file.parent.name != "__pycache__"]
RECORDINGS = tuple(_read(file) for file in _FILES if file.suffix != ".body")
WHOLE_RESPONSES = tuple(_read(file) for file in _FILES if file.suffix == ".body")
