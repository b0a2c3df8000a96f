"""Requests that go on to the cluster: who may send them, and what browsers are told beside the response."""

import asyncio
from contextlib import suppress
from typing import Protocol

from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.rest_handlers.callers import PassingGate
from opensearch_ml_stream.rest_handlers.http.host_and_origin import security_headers
from opensearch_ml_stream.rest_handlers.http.requests import header
from opensearch_ml_stream.rest_handlers.http.responses import error_response


class FrontDoor(Protocol):
    """The way to the cluster: an ASGI application that sends a request there and its response back, as both are."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Relay the request. Where no host of the cluster responds, the response is a 503 that says so."""
        ...

    async def fetch(self, scope: Scope, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """Ask for a path (with its query) by GET, for the caller of the request; return status and body.

        A `body` is JSON. Unavailable when no host responds.
        """
        ...


class ClusterRequests:
    """The ASGI application of all requests that go on to the cluster."""

    def __init__(self, door: FrontDoor, gate: PassingGate) -> None:
        self._door = door
        self._gate = gate
        self._open = 0
        self._all_done = asyncio.Event()
        self._all_done.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the request on, if its caller may, and its response back."""
        try:
            admitted = dict(await self._gate.admit_to_cluster(scope))
        except MLStreamError as error:
            await error_response(Request(scope), error)(scope, receive, send)
            return
        self._open += 1
        self._all_done.clear()
        try:
            await self._door(admitted, receive, _with_security_headers(scope, send) if _is_browser(scope) else send)
        finally:
            self._open -= 1
            if not self._open:
                self._all_done.set()

    async def drain(self, seconds: float) -> None:
        """Wait so long at most for the requests that have gone on, as the server stops."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._all_done.wait()

    async def fetch(self, scope: Scope, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """Return what the cluster responds to the caller of a request; see `FrontDoor.fetch` for path and body.

        Errors are those of the gate, and Unavailable.
        """
        return await self._door.fetch(dict(await self._gate.admit_to_cluster(scope)), path, body)


def _is_browser(scope: Scope) -> bool:
    """Whether a browser shows the response to its user or to a page; other clients get it as it is."""
    names = {name for name, _ in scope["headers"]}
    return b"origin" in names or b"sec-fetch-site" in names or "text/html" in header(scope, b"accept").lower()


def _with_security_headers(scope: Scope, send: Send) -> Send:
    added = security_headers(scope)
    replaced = {name for name, _ in added} - {b"vary"}

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            kept = [pair for pair in message.get("headers", ()) if pair[0].lower() not in replaced]
            message = {**message, "headers": [*kept, *added]}
        await send(message)

    return send_with_headers
