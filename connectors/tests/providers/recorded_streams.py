"""The recorded exchanges with providers that the tests replay: `exchanges/` has one file for each.

A file holds what a provider takes and how it responds, for the blueprint of its name, then a line of `---` and the
provider's own bytes, with CRLF and cuts as they were; a file that ends in `.frames` has one AWS frame a line, its name
and its payload, and becomes frames here. The head is YAML:

    source     where the provider describes the interface
    preset     how the stream is read
    text, reasoning, tools ([id, name, arguments] each), finish, native, usage, model: what the stream says
    good_from  from which event on the body may end; absent: only after the last
    replays    in place of a stream of its own: the file whose stream it is
    blueprint  what the provider receives from the blueprint of this name:
        headers    that have to arrive as they stand here; `aws` the service that the request is signed for
        path, body, response    of the call in one piece (`calls`: of each, where there are several)
        streamed   how the streamed call differs: path, members of the body, headers; absent: it does not stream
        own        parameters that say the same question in the provider's own form
        texts      what a model of vectors is called with
        prediction, predicted    what the sidecar is asked and gives, where it is neither a question nor texts

`<question>` and `<secret>` stand for QUESTION and SECRET.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, to_chunk_list
from opensearch_ml_stream.connectors.decoding.contract import Outcome
from opensearch_ml_stream.connectors.decoding.decoder import Decoder, FastPathDecoder
from opensearch_ml_stream.connectors.known_providers import SHIPPED
from tests.providers.eventstream_frames import event, invoke_chunk

QUESTION = 'What is "the meaning" of life?\n世界'
SECRET = "sk-secret-1234567890"  # the value of every credential

_FILES = [file for file in sorted((Path(__file__).parent / "exchanges").iterdir()) if file.suffix != ".md"]


@dataclass(frozen=True, slots=True)
class Recorded:
    """A stream and what it says; `good_from` None: the body may end only after the last event."""

    name: str
    preset: str
    data: bytes
    text: str
    finish: str
    native: str | None
    reasoning: str = ""
    tools: list[dict[str, Any]] = field(default_factory=list)
    usage: dict[str, int] | None = None
    model: str | None = None
    good_from: int | None = None

    def decoder(self) -> Decoder | FastPathDecoder:
        return SHIPPED.presets[self.preset].decoder()


def play(decoder: Decoder | FastPathDecoder, pieces: list[bytes]) -> tuple[list[Chunk], Outcome]:
    """All the chunks and the outcome of a body that comes in these pieces."""
    chunks: list[Chunk] = []
    for piece in pieces:
        chunks += to_chunk_list(decoder.feed(piece))
    chunks += to_chunk_list(decoder.close())
    assert decoder.outcome is not None
    return chunks, decoder.outcome


def join_chunks(chunks: list[Chunk]) -> tuple[str, str, list[dict[str, Any]]]:
    """The whole text, the whole reasoning, and the tool calls put together."""
    calls: dict[int, dict[str, Any]] = {}
    for call in (call for chunk in chunks for call in chunk.tool_calls):
        known = calls.setdefault(call.index, {"id": None, "name": None, "arguments": ""})
        known["id"] = known["id"] or call.id
        known["name"] = known["name"] or call.name
        known["arguments"] += call.arguments
    text = "".join(chunk.text for chunk in chunks)
    return text, "".join(chunk.reasoning for chunk in chunks), [calls[index] for index in sorted(calls)]


def ending_fields(outcome: Outcome) -> tuple[str, str | None, dict[str, int] | None, str | None]:
    assert isinstance(outcome, Ending), outcome
    usage = None if outcome.usage is None else outcome.usage.as_dict()
    return outcome.finish_reason, outcome.native_finish_reason, usage, outcome.model


def outcome_fields(outcome: Outcome) -> tuple[object, ...]:
    """An outcome as a value that compares: errors have no equality of their own."""
    if isinstance(outcome, Ending):
        return ending_fields(outcome)
    return type(outcome), outcome.reason, outcome.status, outcome.provider_status


def tool(id: str | None, name: str, arguments: str) -> dict[str, Any]:
    return {"id": id, "name": name, "arguments": arguments}


def tokens(input: int, output: int, total: int | None = None, **more: int) -> dict[str, int]:
    return {
        "input_tokens": input,
        "output_tokens": output,
        "total_tokens": input + output if total is None else total,
        **more,
    }


@dataclass(frozen=True, slots=True)
class Call:
    """A call with a response in one piece: what the provider receives and sends."""

    path: str
    body: Any
    response: Any


@dataclass(frozen=True, slots=True)
class StreamedCall:
    """A call with a streamed response; `headers` are needed besides the exchange's."""

    path: str
    body: Any
    headers: dict[str, str]
    recorded: Recorded
    framing: str


@dataclass(frozen=True, slots=True)
class Exchange:
    """What a provider takes from a blueprint and how it responds."""

    name: str
    source: str
    preset: str
    calls: list[Call]
    streamed: StreamedCall | None
    headers: dict[str, str]
    aws: str | None
    own: dict[str, Any] | None
    texts: list[str]
    prediction: dict[str, Any]
    predicted: list[Any] | None


def _read(file: Path) -> tuple[dict[str, Any], bytes]:
    head, _, body = file.read_bytes().partition(b"\n---\n")
    return _filled(yaml.safe_load(head)), body


def _filled(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("<question>", QUESTION).replace("<secret>", SECRET)
    if isinstance(value, dict):
        return {name: _filled(member) for name, member in value.items()}
    return [_filled(element) for element in value] if isinstance(value, list) else value


def frames(body: bytes, preset: str) -> bytes:
    """The AWS frames of lines that hold a frame's name and payload each."""
    lines = (line.partition(b" ") for line in body.splitlines())
    return b"".join(
        invoke_chunk(payload) if preset == "bedrock/invoke" else event(name.decode(), payload)
        for name, _, payload in lines
    )


def _recorded(file: Path, head: dict[str, Any], body: bytes) -> Recorded:
    meaning: dict[str, Any] = {"text": "", "native": None}
    meaning |= {name: value for name, value in head.items() if name not in ("source", "blueprint", "tools")}
    data = frames(body, head["preset"]) if file.suffix == ".frames" else body
    tools = [tool(*call) for call in head.get("tools", [])]
    return Recorded(file.stem, data=data, tools=tools, **meaning)


def _exchange(file: Path, head: dict[str, Any]) -> Exchange:
    said = head["blueprint"]
    calls = [
        Call(**call) for call in said.get("calls") or [{name: said[name] for name in ("path", "body", "response")}]
    ]
    streamed = None
    if "streamed" in said:
        changes, played = said["streamed"], STREAMS[head.get("replays", file.stem)]
        path, body = changes.get("path", calls[0].path), {**calls[0].body, **changes.get("body", {})}
        streamed = StreamedCall(path, body, changes.get("headers", {}), played, _framing(played))
    texts = said.get("texts", [])
    asked = {"text_docs": texts} if texts else {"parameters": {"inputs": QUESTION}}
    return Exchange(
        name=file.stem,
        source=head["source"],
        preset=head.get("preset", ""),
        calls=calls,
        streamed=streamed,
        headers=said.get("headers", {}),
        aws=said.get("aws"),
        own=said.get("own"),
        texts=texts,
        prediction=said.get("prediction", asked),
        predicted=said.get("predicted"),
    )


def _framing(recorded: Recorded) -> str:
    """sse, ndjson or aws."""
    if recorded.preset.startswith(("bedrock/", "sagemaker/")) and "openai" not in recorded.preset:
        return "aws"
    return "ndjson" if recorded.data.startswith(b"{") else "sse"


_READ = {file: _read(file) for file in _FILES}
_FROM_FILES = [_recorded(file, *read) for file, read in _READ.items() if read[1]]
_TGI = next(recorded for recorded in _FROM_FILES if recorded.name == "tgi-generate")
_TGI_FRAMES = b"".join(event("PayloadPart", part) for part in (_TGI.data[:50], _TGI.data[50:333], _TGI.data[333:]))
_SAGEMAKER_NDJSON = b"".join([
    event("PayloadPart", b'{"token": {"id": 1, "text": "dj", "log_prob": -0.1}}\n{"token": {"id": 2, "te'),
    event("PayloadPart", b'xt": "l"}, "details": {"finish_reason": "length", "generated_tokens": 2}, '),
    event("PayloadPart", b'"generated_text": "djl"}\n'),
])  # fmt: skip
_SAGEMAKER_PLAIN = b"".join([
    event("PayloadPart", "pl\u00e4".encode()[:3]),
    event("PayloadPart", "pl\u00e4".encode()[3:]),
    event("PayloadPart", b"in text"),
])  # fmt: skip

# Cut within events and characters, as SageMaker cuts what a container writes.
_SAGEMAKER = "sagemaker/invocations"
_CUT = (
    Recorded("sagemaker-tgi", _SAGEMAKER, _TGI_FRAMES, _TGI.text, _TGI.finish, _TGI.native, usage=_TGI.usage),
    Recorded("sagemaker-ndjson", _SAGEMAKER, _SAGEMAKER_NDJSON, "djl", "length", "length"),
    Recorded("sagemaker-plain", _SAGEMAKER, _SAGEMAKER_PLAIN, "pl\u00e4in text", "stop", None, good_from=2),
)
ALL_STREAMS = (*_FROM_FILES, *_CUT)
STREAMS = {recorded.name: recorded for recorded in ALL_STREAMS}
EXCHANGES = {file.stem: _exchange(file, head) for file, (head, _) in _READ.items() if "blueprint" in head}
"""By the name of the blueprint."""
