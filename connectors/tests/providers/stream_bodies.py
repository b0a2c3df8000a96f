"""Bodies of provider streams, written from their payloads and read through a preset."""

import json
from collections.abc import Mapping
from typing import Any

from opensearch_ml_stream.connectors.chunks import Chunk, Ending
from opensearch_ml_stream.connectors.decoding.contract import Outcome
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.known_providers import SHIPPED
from tests.providers.recorded_streams import play


def sse(*payloads: Mapping[str, Any] | str) -> bytes:
    texts = [payload if isinstance(payload, str) else json.dumps(payload) for payload in payloads]
    return "".join(f"data: {text}\n\n" for text in texts).encode()


def ndjson(*payloads: Mapping[str, Any]) -> bytes:
    return "".join(json.dumps(payload) + "\n" for payload in payloads).encode()


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    """A chunk of OpenAI's chat completions with these fields in its delta."""
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def decode(preset: str, data: bytes) -> tuple[list[Chunk], Outcome]:
    return play(SHIPPED.presets[preset].decoder(), [data])


def ending_of(preset: str, data: bytes) -> Ending:
    _, outcome = decode(preset, data)
    assert isinstance(outcome, Ending), outcome
    return outcome


def error_of(preset: str, data: bytes) -> UpstreamError:
    _, outcome = decode(preset, data)
    assert isinstance(outcome, UpstreamError), outcome
    return outcome
