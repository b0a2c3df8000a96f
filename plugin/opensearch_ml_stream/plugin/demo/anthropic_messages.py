"""Anthropic's `/v1/messages` with canned responses: https://docs.anthropic.com/en/api/messages-streaming."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from hashlib import sha256
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from opensearch_ml_stream.plugin.demo.canned_responses import CannedResponse, canned_response, paces
from opensearch_ml_stream.plugin.demo.request_parsing import Refused, last_question, object_of, read_object, token_limit

_THOUGHT = ("The", " user", " asks", " something", ";", " I", " look", " for", " a", " rule", ".")


async def messages(request: Request) -> Response:
    """Respond as Anthropic's messages do, streamed if the request asks for it; 400 or 401 as they do."""
    if not (request.headers.get("x-api-key") or request.headers.get("authorization")):
        return _error(401, "authentication_error", "x-api-key header is required")
    try:
        if not request.headers.get("anthropic-version"):
            raise Refused("anthropic-version: header is required")
        body = await read_object(request)
        if not isinstance(body.get("model"), str):
            raise Refused("model: Field required")
        limit = token_limit(body, "max_tokens")
        if limit is None:
            raise Refused("max_tokens: Field required")
        thinks = object_of(body, "thinking").get("type") == "enabled"
        canned = canned_response(last_question(body), limit)
    except Refused as refused:
        return _error(400, "invalid_request_error", refused.reason)
    if body.get("stream") is True:
        return StreamingResponse(_events(body, canned, thinks), media_type="text/event-stream")
    await asyncio.sleep(sum(pace for pace, _ in zip(paces(canned.text), canned.tokens, strict=False)))
    return JSONResponse(_whole(body, canned))


async def _events(body: Mapping[str, Any], canned: CannedResponse, thinks: bool) -> AsyncIterator[bytes]:
    usage = {**_usage(canned), "output_tokens": 1}
    started = {**_message(body, canned), "content": [], "stop_reason": None, "usage": usage}
    yield _event({"type": "message_start", "message": started})
    index = 0
    if thinks:
        async for event in _thinking():
            yield event
        index = 1
    yield _event({"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}})
    yield _event({"type": "ping"})
    for pace, token in zip(paces(canned.text), canned.tokens, strict=False):
        await asyncio.sleep(pace)
        yield _delta(index, {"type": "text_delta", "text": token})
    yield _event({"type": "content_block_stop", "index": index})
    ending = {"stop_reason": _stop_reason(canned), "stop_sequence": None}
    yield _event({"type": "message_delta", "delta": ending, "usage": {"output_tokens": len(canned.tokens)}})
    yield _event({"type": "message_stop"})


async def _thinking() -> AsyncIterator[bytes]:
    block = {"type": "thinking", "thinking": "", "signature": ""}
    yield _event({"type": "content_block_start", "index": 0, "content_block": block})
    for pace, token in zip(paces("thought"), _THOUGHT, strict=False):
        await asyncio.sleep(pace)
        yield _delta(0, {"type": "thinking_delta", "thinking": token})
    yield _delta(0, {"type": "signature_delta", "signature": "ZGVtbw=="})
    yield _event({"type": "content_block_stop", "index": 0})


def _whole(body: Mapping[str, Any], canned: CannedResponse) -> dict[str, Any]:
    content = [{"type": "text", "text": canned.text}]
    return {**_message(body, canned), "content": content, "stop_reason": _stop_reason(canned), "usage": _usage(canned)}


def _message(body: Mapping[str, Any], canned: CannedResponse) -> dict[str, Any]:
    return {
        "id": f"msg_{sha256(canned.text.encode()).hexdigest()[:24]}",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }


def _usage(canned: CannedResponse) -> dict[str, int]:
    return {"input_tokens": canned.prompt_tokens, "output_tokens": len(canned.tokens)}


def _stop_reason(canned: CannedResponse) -> str:
    return "max_tokens" if canned.cut else "end_turn"


def _delta(index: int, delta: Mapping[str, Any]) -> bytes:
    return _event({"type": "content_block_delta", "index": index, "delta": delta})


def _event(payload: Mapping[str, Any]) -> bytes:
    return f"event: {payload['type']}\ndata: ".encode() + orjson.dumps(payload) + b"\n\n"


def _error(status: int, type: str, message: str) -> JSONResponse:
    return JSONResponse({"type": "error", "error": {"type": type, "message": message}}, status)
