"""Middleware of vLLM's server: asks for its key on every route but its health.

vLLM itself asks for it below /v1 and some other prefixes; /invocations and /tokenize are not among them. The server
imports this module by its name alone: nothing else of ours is on its path.
"""

import os
from collections.abc import Awaitable, Callable
from hmac import compare_digest
from typing import Any

_OPEN = "/health"
_HEAD = {"type": "http.response.start", "status": 401, "headers": [(b"content-type", b"application/json")]}
_BODY = {"type": "http.response.body", "body": b'{"error":"Unauthorized"}'}


class KeyForEveryRoute:
    """Fits `vllm serve --middleware`; the key is that of the environment."""

    def __init__(self, app: Callable[..., Awaitable[None]]) -> None:
        self._app = app
        self._expected = f"Bearer {os.environ['VLLM_API_KEY']}".encode()

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Callable[[Any], Awaitable[None]]) -> None:
        """Pass on what has the key, and what asks for the server's health."""
        if scope["type"] == "lifespan" or scope["path"] == _OPEN or self._has_key(scope):
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await send(_HEAD)
            await send(_BODY)
        else:
            await send({"type": "websocket.close", "code": 1008})

    def _has_key(self, scope: dict[str, Any]) -> bool:
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        return any(compare_digest(value, self._expected) for value in given)
