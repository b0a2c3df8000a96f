"""Watches a client by ASGI's messages, for servers that do not tell of it in another way."""

import asyncio

from starlette.types import Receive

from opensearch_ml_stream.rest_handlers.http.chunk_writer import HALF_CLOSED
from opensearch_ml_stream.rest_handlers.http.direct_exchange import ClientWatcher


async def watch_messages(receive: Receive, watcher: ClientWatcher) -> None:
    """Tell the watcher of the client until it has disconnected. The body must have been received."""
    while (kind := (await receive())["type"]) != "http.disconnect":
        if kind == HALF_CLOSED:
            watcher.client_half_closed()
    watcher.client_disconnected()


def start_watch(receive: Receive, watcher: ClientWatcher) -> asyncio.Task[None]:
    """Watch in a task, which whoever starts it cancels."""
    return asyncio.create_task(watch_messages(receive, watcher))
