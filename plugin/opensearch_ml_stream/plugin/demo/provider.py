"""The demo provider: an HTTP server on loopback with the streaming APIs of OpenAI and Anthropic."""

import hashlib
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from opensearch_ml_stream.plugin.demo.anthropic_messages import messages
from opensearch_ml_stream.plugin.demo.background_server import serving_in_background
from opensearch_ml_stream.plugin.demo.openai_chat import chat_completions

HOST = "127.0.0.1"
_SECONDS = 1.0  # on this machine


def provider_app(store: str) -> Starlette:
    """Return the provider of a demo with that store as an ASGI application."""

    async def name(request: Request) -> PlainTextResponse:
        return PlainTextResponse(_name(store))

    return Starlette(
        routes=[
            Route("/", name),
            Route("/v1/chat/completions", chat_completions, methods=["POST"]),
            Route("/v1/messages", messages, methods=["POST"]),
        ]
    )


def is_demo_provider(url: str, store: str) -> bool:
    """Return whether the provider of a demo with that store responds at this URL."""
    try:
        return httpx.get(url, timeout=_SECONDS, trust_env=False).text == _name(store)
    except httpx.HTTPError:
        return False


def _name(store: str) -> str:
    return f"the demo provider of opensearch-ml-stream, store {hashlib.sha256(store.encode()).hexdigest()[:16]}"


@contextmanager
def demo_provider(store: str, wanted_port: int = 0) -> Iterator[str]:
    """Run the provider in a thread, on `wanted_port` if it is free, else on another; yield its URL."""
    with _listening_socket(wanted_port) as listener, serving_in_background(provider_app(store), listener):
        yield f"http://{HOST}:{listener.getsockname()[1]}"


def _listening_socket(wanted_port: int) -> socket.socket:
    for port in (wanted_port, 0):
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
        except OSError:
            listener.close()
            if port == 0:
                raise
            continue
        listener.listen()
        return listener
    raise AssertionError("the loop returns or raises")
