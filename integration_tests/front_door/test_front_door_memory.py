"""Bodies of any size pass through a sidecar in little memory: a bulk, and the response to a long scroll."""

import asyncio
from pathlib import Path

from integration_tests.front_door.scripted_cluster import OK, Connection, header_lines, host
from integration_tests.support.sidecars import running_sidecar
from integration_tests.support.worker_processes import worker_pids

SIZE = 100_000_000
MOST_GROWTH = 24 * 1024  # KiB; of a body that was kept it would be 97,000
_PART = bytes(1_000_000)
_NO_INDEX = b'{"error":{"type":"index_not_found_exception","reason":"no such index"},"status":404}'
_INFO = b'{"version":{"number":"3.4.0"}}'


async def cluster(connection: Connection) -> None:
    """Takes a bulk, gives a scroll; what the sidecar's store asks for is not there."""
    while True:
        request, *lines = header_lines(await connection.head())
        headers = dict(line.split(": ", 1) for line in lines)
        if "expect" in headers:
            await connection.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        taken = int(headers.get("content-length", 0))
        while taken:
            taken -= len(await connection.body(min(taken, 65536)))
            connection.received.clear()
        if request.startswith("GET /_scroll"):
            await connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % SIZE)
            for _ in range(SIZE // len(_PART)):
                await connection.send(_PART)
        elif request.startswith(("GET / ", "POST /_bulk")):
            body = _INFO if request.startswith("GET") else b"{}"
            await connection.send(OK.replace(b"2\r\n\r\n{}", b"%d\r\n\r\n%b" % (len(body), body)))
        else:
            head = OK.replace(b"200 OK", b"404 Not Found").replace(b"2\r\n\r\n{}", b"%d\r\n\r\n" % len(_NO_INDEX))
            await connection.send(head + (b"" if request.startswith("HEAD") else _NO_INDEX))


async def test_a_large_body_costs_no_memory(tmp_path: Path) -> None:
    async with host(cluster) as opensearch:
        opening = running_sidecar(
            tmp_path, opensearch.url, {"opensearch_ml_stream.security": "none"}, ("--pass-through",)
        )
        sidecar = await asyncio.to_thread(opening.__enter__)
        try:
            (pid,) = worker_pids(sidecar)
            port = int(sidecar.url.rpartition(":")[2])
            await exchange(port, b"POST /_bulk", 1000)
            before = peak_memory(pid)
            assert await exchange(port, b"POST /_bulk", SIZE) == (SIZE, 2)
            assert await exchange(port, b"GET /_scroll", 0) == (0, SIZE)
            assert peak_memory(pid) - before < MOST_GROWTH
        finally:
            await asyncio.to_thread(opening.__exit__, None, None, None)


async def exchange(port: int, request: bytes, size: int) -> tuple[int, int]:
    """Send a request with a body of that size; the bytes sent of it, and those received of the response's."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = b"%b HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % (request, size)
    writer.write(head)
    sent = received = 0
    while sent < size:
        part = _PART[: size - sent]
        writer.write(part)
        await writer.drain()
        sent += len(part)
    response = await reader.readuntil(b"\r\n\r\n")
    assert response.startswith(b"HTTP/1.1 200 "), response
    while data := await reader.read(1_000_000):
        received += len(data)
    writer.close()
    return sent, received


def peak_memory(pid: int) -> int:
    """The most memory that a process has had so far, in KiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (peak,) = [line.split()[1] for line in lines if line.startswith("VmHWM:")]
    return int(peak)
