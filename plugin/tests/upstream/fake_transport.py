"""A transport in memory: what is written is kept, what the peer does is called."""

import asyncio
from collections.abc import Iterable


class FakeTransport(asyncio.Transport):
    """Records writes and calls. Each of `responses` is received after one write, as if a provider sent it."""

    def __init__(self, protocol: asyncio.BaseProtocol, responses: Iterable[bytes] = ()) -> None:
        super().__init__()
        self.protocol = protocol
        self.calls: list[str] = []
        self.written: list[bytes] = []
        self.write_buffer_size = 0
        self._responses = iter(responses)
        self._closing = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.calls.append("write")
        self.written.append(bytes(data))
        response = next(self._responses, None)
        if response is not None:
            asyncio.get_running_loop().call_soon(self.receive, response)

    def get_write_buffer_size(self) -> int:
        return self.write_buffer_size

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.calls.append("write_eof")

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.calls.append("set_protocol")
        self.protocol = protocol

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        self._close("close", None)

    def abort(self) -> None:
        self._close("abort", None)

    def pause_reading(self) -> None:
        self.calls.append("pause_reading")

    def resume_reading(self) -> None:
        self.calls.append("resume_reading")

    def receive(self, data: bytes) -> None:
        """The peer sends bytes."""
        assert not self._closing, "a closed transport receives nothing"
        assert isinstance(self.protocol, asyncio.Protocol)
        self.protocol.data_received(data)

    def receive_eof(self) -> None:
        """The peer closes its side."""
        assert isinstance(self.protocol, asyncio.Protocol)
        if not self.protocol.eof_received():
            self._close("close", None)

    def reset(self) -> None:
        """The connection breaks."""
        self._close("reset", ConnectionResetError())

    def cut(self) -> None:
        """The connection ends, but the peer has not closed its side: over TLS there was no close_notify."""
        self._close("cut", None)

    def _close(self, call: str, error: Exception | None) -> None:
        self.calls.append(call)
        if not self._closing:
            self._closing = True
            asyncio.get_running_loop().call_soon(lambda: self.protocol.connection_lost(error))
