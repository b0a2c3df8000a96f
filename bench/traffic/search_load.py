"""`python -m bench.traffic.search_load PORT searches|upload|download SECONDS`: the requests of a cluster's clients.

Prints the number of whole responses, as JSON.
"""

import asyncio
import json
import sys
import time

import uvloop

from bench.traffic.search_cluster import LARGE, LARGE_BYTES, SEARCH

CONNECTIONS = {"searches": 32, "upload": 2, "download": 2}

_QUERY = b'{"query":{"match":{"title":"some words"}},"size":16}'
_POST = b"POST %b HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
_GET = b"GET %b HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" % LARGE
_PART = bytes(2**18)


async def _exchange(what: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    if what == "searches":
        writer.write(_POST % (SEARCH, len(_QUERY)) + _QUERY)
    elif what == "download":
        writer.write(_GET)
    else:
        writer.write(_POST % (b"/_bulk", LARGE_BYTES))
        for _ in range(LARGE_BYTES // len(_PART)):
            writer.write(_PART)
            await writer.drain()
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    assert head.startswith(b"http/1.1 200 "), head
    left = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
    while left:
        left -= len(await reader.read(min(left, 2**20)))


async def _client(port: int, what: str, until: float) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**20)
    done = 0
    while time.monotonic() < until:
        await _exchange(what, reader, writer)
        done += 1
    writer.close()
    return done


async def _load(port: int, what: str, seconds: float) -> int:
    until = time.monotonic() + seconds
    return sum(await asyncio.gather(*[_client(port, what, until) for _ in range(CONNECTIONS[what])]))


if __name__ == "__main__":
    print(json.dumps(uvloop.run(_load(int(sys.argv[1]), sys.argv[2], float(sys.argv[3])))))  # noqa: T201
