"""The process's side of the socket to the keeper: it reads one JSON line, sends events, and ends with the socket."""

import asyncio
import json
import os
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

SECONDS_TO_END = 6.0  # from the end of file to the hard end of a process that does not end by itself


class Keeper:
    """The keeper of this process, over the connected socket with the number `descriptor`."""

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)
        self._socket = socket.socket(fileno=descriptor)
        self._exit_status = 1

    def start_line(self) -> dict[str, Any]:
        """Read the line with the model to run. EOFError if the keeper ends before it is complete."""
        received = b""
        while not received.endswith(b"\n"):
            data = self._socket.recv(65536)
            if not data:
                raise EOFError("The keeper ended before it sent the model to run")
            received += data
        line: dict[str, Any] = json.loads(received)
        return line

    def tell(self, event: str, **fields: object) -> None:
        """Send an event; it is lost if the keeper is gone or does not read."""
        line = json.dumps({"event": event, **fields}, default=str) + "\n"
        # It is a blocking socket, and nothing here may wait for the keeper.
        with suppress(OSError):
            self._socket.send(line.encode(), socket.MSG_DONTWAIT)

    def watch(self, loop: asyncio.AbstractEventLoop, on_end: Callable[[], None]) -> None:
        """Call `on_end` in the loop at the end of file, and end the process SECONDS_TO_END later in any case.

        A thread waits for it, since a model may block the loop.
        """
        threading.Thread(target=self._wait_for_end, args=(loop, on_end), name="keeper", daemon=True).start()

    def _wait_for_end(self, loop: asyncio.AbstractEventLoop, on_end: Callable[[], None]) -> None:
        with suppress(OSError):
            while self._socket.recv(65536):
                pass
        with suppress(RuntimeError):  # the loop is closed already
            loop.call_soon_threadsafe(on_end)
        threading.Event().wait(SECONDS_TO_END)
        os._exit(self._exit_status)

    def end(self) -> None:
        """Let this process end as if the keeper were gone; may be called from a signal handler."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RD)

    def unloaded(self) -> None:
        """Record success: if threads of the model keep the process alive, its exit status is still 0."""
        self._exit_status = 0


@dataclass
class Figures:
    """What this process has done since its start, for the keeper's status; `in_flight` goes up and down."""

    in_flight: int = 0
    calls: int = 0  # begun
    failures: int = 0  # ended by ERROR
    batches: int = 0  # predictions that took their requests from a batch, also a batch of one
    batched_requests: int = 0

    def copied(self) -> dict[str, int]:
        """Copy them into a dictionary."""
        return asdict(self)
