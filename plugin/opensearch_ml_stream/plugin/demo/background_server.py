"""A server of an ASGI application in a thread of this process: for the providers that the command line plays."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

_STOP_SECONDS = 0.3


@contextmanager
def serving_in_background(app: ASGIApp, listener: socket.socket, log_level: str = "error") -> Iterator[None]:
    """Serve on a socket that listens while the block runs; connections that are open at its end are cut."""
    config = uvicorn.Config(app, log_config=None, log_level=log_level, access_log=False, lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.should_exit = server.force_exit = True
        thread.join(_STOP_SECONDS)
