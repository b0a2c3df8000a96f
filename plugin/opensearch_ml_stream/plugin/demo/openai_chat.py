"""OpenAI's `/v1/chat/completions` with canned responses: https://platform.openai.com/docs/api-reference/chat."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from hashlib import sha256
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from opensearch_ml_stream.plugin.demo.canned_responses import CannedResponse, canned_response, paces
from opensearch_ml_stream.plugin.demo.request_parsing import Refused, last_question, object_of, read_object, token_limit


async def chat_completions(request: Request) -> Response:
    """Respond as OpenAI's chat completions do, streamed if the request asks for it; 400 or 401 as they do."""
    if not request.headers.get("authorization", "").startswith("Bearer "):
        return _error(401, "You didn't provide an API key. Send it in an Authorization header: Bearer YOUR_KEY.")
    try:
        body = await read_object(request)
        if not isinstance(body.get("model"), str):
            raise Refused("you must provide a model parameter")
        if body.get("stream_options") is not None and body.get("stream") is not True:
            raise Refused("The 'stream_options' parameter is only allowed when 'stream' is enabled.", "stream_options")
        limit = token_limit(body, "max_completion_tokens", "max_tokens")
        with_usage = object_of(body, "stream_options").get("include_usage") is True
        canned = canned_response(last_question(body), limit)
    except Refused as refused:
        return _error(400, refused.reason, refused.parameter)
    if body.get("stream") is True:
        return StreamingResponse(_events(body, canned, with_usage), media_type="text/event-stream")
    await asyncio.sleep(sum(pace for pace, _ in zip(paces(canned.text), canned.tokens, strict=False)))
    return JSONResponse(_whole(body, canned))


async def _events(body: Mapping[str, Any], canned: CannedResponse, with_usage: bool) -> AsyncIterator[bytes]:
    head = {**_head(body, canned), "object": "chat.completion.chunk"}
    usage: dict[str, Any] = {"usage": None} if with_usage else {}

    def chunk(delta: Mapping[str, Any], finish_reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return _event({**head, "choices": [choice], **usage})

    yield chunk({"role": "assistant", "content": "", "refusal": None})
    for pace, token in zip(paces(canned.text), canned.tokens, strict=False):
        await asyncio.sleep(pace)
        yield chunk({"content": token})
    yield chunk({}, _finish_reason(canned))
    if with_usage:
        yield _event({**head, "choices": [], "usage": _usage(canned)})
    yield b"data: [DONE]\n\n"


def _whole(body: Mapping[str, Any], canned: CannedResponse) -> dict[str, Any]:
    message = {"role": "assistant", "content": canned.text, "refusal": None}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish_reason(canned)}
    return {**_head(body, canned), "object": "chat.completion", "choices": [choice], "usage": _usage(canned)}


def _head(body: Mapping[str, Any], canned: CannedResponse) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{sha256(canned.text.encode()).hexdigest()[:29]}",
        "object": "",
        "created": int(time.time()),
        "model": body["model"],
        "service_tier": "default",
        "system_fingerprint": "fp_demo",
    }


def _usage(canned: CannedResponse) -> dict[str, int]:
    count = len(canned.tokens)
    return {
        "prompt_tokens": canned.prompt_tokens,
        "completion_tokens": count,
        "total_tokens": canned.prompt_tokens + count,
    }


def _finish_reason(canned: CannedResponse) -> str:
    return "length" if canned.cut else "stop"


def _event(payload: Mapping[str, Any]) -> bytes:
    return b"data: " + orjson.dumps(payload) + b"\n\n"


def _error(status: int, message: str, parameter: str | None = None) -> JSONResponse:
    error = {"message": message, "type": "invalid_request_error", "param": parameter, "code": None}
    return JSONResponse({"error": error}, status)
