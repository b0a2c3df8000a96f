"""A provider of the Responses API, which answers by what the last item of the input asks for; see `scripted_models`."""

from typing import Any

from integration_tests.openai_api.scripted_models import CITY, TEXTS, TOO_LONG, answer
from integration_tests.support.fake_provider import (
    LAST_CHUNK,
    SSE_HEAD,
    Act,
    Request,
    Script,
    chunk,
    json_response,
    sse_event,
)

COUNTED = 42  # tokens of any request

_USAGE = {
    "input_tokens": 5,
    "input_tokens_details": {"cached_tokens": 2},
    "output_tokens": 3,
    "output_tokens_details": {"reasoning_tokens": 1},
    "total_tokens": 8,
}


def answer_responses(request: Request) -> Script:
    """The script for a request; those of other interfaces are `scripted_models`'."""
    if request.path.endswith("_tokens"):
        return json_response({"object": "response.input_tokens", "input_tokens": COUNTED})
    if not request.path.endswith("/responses"):
        return answer(request)
    body = request.json()
    asked = _asked(body["input"])
    if asked == "limit":
        return json_response({"error": {"message": "Slow down", "type": "requests"}}, 429, retry_after="7")
    if asked == "long":
        failed = {**_response("failed", []), "error": TOO_LONG["error"]}
        event = sse_event({"type": "response.failed", "sequence_number": 0, "response": failed}, "response.failed")
        return [SSE_HEAD, chunk(event), LAST_CHUNK] if body.get("stream") else json_response(TOO_LONG, 400)
    if not body.get("stream"):
        return json_response(_response("completed", [_item(asked)]))
    events = [sse_event({**event, "sequence_number": n}, event["type"]) for n, event in enumerate(_events(asked))]
    if asked == "break":
        return [SSE_HEAD, *(chunk(event) for event in events[:4]), Act.CLOSE]
    return [SSE_HEAD, *(chunk(event) for event in events), LAST_CHUNK]


def _asked(given: Any) -> str:
    """What the last item says; `rain`, which a tool does, asks for nothing of its own."""
    item = given if isinstance(given, str) else given[-1]
    content = item if isinstance(item, str) else item.get("content", "")
    return content if isinstance(content, str) else str(content[-1].get("text", ""))


def _response(status: str, output: list[Any]) -> dict[str, Any]:
    return {
        "id": "resp_p",
        "object": "response",
        "created_at": 7,
        "status": status,
        "model": "gpt-p",
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": _USAGE if status == "completed" else None,
        "provider_note": "as sent",
    }


def _texts(asked: str) -> tuple[str, ...]:
    return ('{"city"', ': "Ulm"}') if asked == "json" else TEXTS


def _part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _item(asked: str) -> dict[str, Any]:
    if asked == "weather":
        call = {"id": "fc_p", "type": "function_call", "status": "completed", "call_id": "call_p", "name": "weather"}
        return {**call, "arguments": CITY}
    message = {"id": "msg_p", "type": "message", "status": "completed", "role": "assistant"}
    return {**message, "content": [_part("".join(_texts(asked)))]}


def _events(asked: str) -> list[dict[str, Any]]:
    item = _item(asked)
    place: dict[str, Any] = {"item_id": item["id"], "output_index": 0}
    part = {**place, "content_index": 0}
    if asked == "weather":
        empty = {**item, "status": "in_progress", "arguments": ""}
        kind, done = "response.function_call_arguments", [{**place, "name": "weather", "arguments": CITY}]
        deltas: list[dict[str, Any]] = [{**place, "delta": piece} for piece in (CITY[:5], CITY[5:])]
        begin = []
    else:
        empty = {**item, "status": "in_progress", "content": []}
        kind, done = "response.output_text", [{**part, "text": "".join(_texts(asked)), "logprobs": []}]
        deltas = [{**part, "delta": text, "logprobs": []} for text in _texts(asked)]
        begin = [{"type": "response.content_part.added", **part, "part": _part("")}]
    return [
        {"type": "response.created", "response": _response("in_progress", [])},
        {"type": "response.output_item.added", "output_index": 0, "item": empty},
        *begin,
        *({"type": f"{kind}.delta", **delta} for delta in deltas),
        *({"type": f"{kind}.done", **members} for members in done),
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": _response("completed", [item])},
    ]
