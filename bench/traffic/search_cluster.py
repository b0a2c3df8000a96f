"""`python -m bench.traffic.search_cluster PORT`: a cluster that finds a kilobyte, and takes and gives large bodies."""

import asyncio
import sys
from typing import cast

import uvloop

LARGE_BYTES = 64 * 2**20
SEARCH, LARGE = b"/_search", b"/_large"

_PART = bytes(2**18)
_HIT = b'{"_id":"%04d","_source":{"title":"a title of some words"}}'
_FOUND = b'{"hits":{"hits":[%b]}}' % b",".join(_HIT % number for number in range(16))
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json; charset=UTF-8\r\nContent-Length: %d\r\n\r\n"
_INFO = b'{"version":{"number":"3.4.0"}}'
_NOTHING = b'{"error":{"type":"index_not_found_exception","reason":"no such index"},"status":404}'
_MISSING = b"HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"


class Connection(asyncio.Protocol):
    """Responds to each request when it is whole."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._head = b""
        self._missing = 0  # bytes of the request's body
        self._left = 0  # bytes of the response's body

    def data_received(self, data: bytes) -> None:
        if not self._missing:
            self._head += data
            head, end, rest = self._head.partition(b"\r\n\r\n")
            if not end:
                return
            self._head = head
            lower = head.lower()
            _, found, length = lower.partition(b"content-length: ")
            self._missing = int(length.partition(b"\r\n")[0]) if found else 0
            if b"expect: 100-continue" in lower:
                self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            data = rest
        self._missing -= len(data)
        if not self._missing:
            path, self._head = self._head.split(b" ", 2)[1], b""
            self._respond(path)

    def resume_writing(self) -> None:
        self._send_large()

    def _respond(self, path: bytes) -> None:
        if path == LARGE:
            self._transport.write(_HEAD % LARGE_BYTES)
            self._left = LARGE_BYTES
            self._send_large()
        elif path in (SEARCH, b"/_bulk"):
            self._transport.write(_HEAD % len(_FOUND) + _FOUND)
        elif path == b"/":
            self._transport.write(_HEAD % len(_INFO) + _INFO)
        else:
            self._transport.write(_MISSING % (len(_NOTHING), _NOTHING))

    def _send_large(self) -> None:
        while self._left and self._transport.get_write_buffer_size() < len(_PART):
            self._transport.write(_PART)
            self._left -= len(_PART)


async def _serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", port, backlog=1024)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(_serve(int(sys.argv[1])))
