"""Events of a chat's stream, as the sidecar sends them."""

import json
from typing import Any

DONE = b"data: [DONE]\n\n"
END: dict[str, Any] = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


def delta(**members: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": members, "finish_reason": None}]}


def call(index: int = 0, id: str | None = None, **function: str) -> dict[str, Any]:
    return delta(tool_calls=[{"index": index, **({"id": id} if id else {}), "function": function}])


def end(reason: str) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}


def sent(*events: dict[str, Any]) -> bytes:
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
