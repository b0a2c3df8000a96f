"""Writes AWS event-stream frames, for the tests: the inverse of what the framing reads."""

import base64
import struct
from zlib import crc32

import orjson


def frame(headers: dict[str, str], payload: bytes) -> bytes:
    """A frame whose headers are all strings."""
    return frame_of_bytes(
        b"".join(string_header(name.encode(), value.encode()) for name, value in headers.items()), payload
    )


def string_header(name: bytes, value: bytes) -> bytes:
    return bytes([len(name)]) + name + b"\x07" + struct.pack(">H", len(value)) + value


def frame_of_bytes(headers: bytes, payload: bytes = b"") -> bytes:
    """A frame with these bytes as its headers, whatever they are."""
    message = prelude(len(headers) + len(payload) + 16, len(headers)) + headers + payload
    return message + struct.pack(">I", crc32(message))


def prelude(total: int, headers: int) -> bytes:
    """The first 12 bytes of a frame: its length, that of its headers, the checksum of both."""
    lengths = struct.pack(">II", total, headers)
    return lengths + struct.pack(">I", crc32(lengths))


def event(name: str, payload: object) -> bytes:
    """An event frame; `payload` is bytes, or an object that is sent as JSON."""
    data = payload if isinstance(payload, bytes) else orjson.dumps(payload)
    return frame({":event-type": name, ":content-type": "application/json", ":message-type": "event"}, data)


def exception(name: str, message: str) -> bytes:
    headers = {":exception-type": name, ":content-type": "application/json", ":message-type": "exception"}
    return frame(headers, orjson.dumps({"message": message}))


def invoke_chunk(payload: object) -> bytes:
    """InvokeModel's frame: the model's own event in base64, and padding; `payload` as for `event`."""
    data = payload if isinstance(payload, bytes) else orjson.dumps(payload)
    return event("chunk", {"bytes": base64.b64encode(data).decode(), "p": "abcdef"})


METRICS = {
    "amazon-bedrock-invocationMetrics": {
        "inputTokenCount": 11,
        "outputTokenCount": 5,
        "invocationLatency": 900,
        "firstByteLatency": 300,
    }
}
