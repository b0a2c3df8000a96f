"""Writes AWS event-stream frames, for the tests: the inverse of what the framing reads."""

import base64
import struct
from zlib import crc32

import orjson


def frame(headers: dict[str, str], payload: bytes) -> bytes:
    """A frame whose headers are all strings."""
    written = b"".join(
        bytes([len(name)]) + name.encode() + b"\x07" + struct.pack(">H", len(value.encode())) + value.encode()
        for name, value in headers.items()
    )
    prelude = struct.pack(">II", len(written) + len(payload) + 16, len(written))
    message = prelude + struct.pack(">I", crc32(prelude)) + written + payload
    return message + struct.pack(">I", crc32(message))


def event(name: str, payload: object) -> bytes:
    """An event frame; `payload` is bytes, or an object that is sent as JSON."""
    data = payload if isinstance(payload, bytes) else orjson.dumps(payload)
    return frame({":event-type": name, ":content-type": "application/json", ":message-type": "event"}, data)


def exception(name: str, message: str) -> bytes:
    headers = {":exception-type": name, ":content-type": "application/json", ":message-type": "exception"}
    return frame(headers, orjson.dumps({"message": message}))


def invoke_chunk(payload: object) -> bytes:
    """InvokeModel's frame: the model's own event in base64, and padding."""
    return event("chunk", {"bytes": base64.b64encode(orjson.dumps(payload)).decode(), "p": "abcdef"})


METRICS = {
    "amazon-bedrock-invocationMetrics": {
        "inputTokenCount": 11,
        "outputTokenCount": 5,
        "invocationLatency": 900,
        "firstByteLatency": 300,
    }
}
