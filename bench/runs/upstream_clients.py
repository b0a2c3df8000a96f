"""CPU time per chunk of the two upstream clients, our own HTTP/1.1 client and aiohttp, on loopback.

    python -m bench.runs.upstream_clients [--rounds 5] [--streams 200] [--seconds 3]

`paced`: each stream gets 50 chunks a second, so that each chunk wakes the client by itself, as a model's tokens do.
`bulk`: 64 streams without delay. The provider is a process of its own; the clients take turns in one process, and
its CPU time (user and system) is what counts, so that other work on the machine hardly matters.
"""

import argparse
import asyncio
import json
import multiprocessing
import statistics
import sys
import time
from multiprocessing.connection import Connection

import uvloop

from opensearch_ml_stream.connectors.client_config import ClientConfig
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.plugin.settings import LiveSettings, Settings
from opensearch_ml_stream.plugin.upstream import Upstream
from opensearch_ml_stream.plugin.upstream.clients.open_upstream import open_upstream

CLIENTS = ("aiohttp", "native")
PACE_SECONDS = 0.02
BULK_STREAMS = 64
BULK_CHUNKS = 2000
CONFIG = ClientConfig(max_connection=10_000)

_EVENT = (
    b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,'
    b'"delta":{"content":"about thirty bytes of a text"},"finish_reason":null}]}\n\n'
)
_CHUNK = b"%x\r\n%b\r\n" % (len(_EVENT), _EVENT)
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


class _Provider(asyncio.Protocol):
    """Responds to any request with the chunks that its body asks for: `{"chunks": 200, "pace": 0.02}`."""

    transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]
        self.remaining = 0

    def data_received(self, data: bytes) -> None:
        plan = json.loads(data[data.index(b"\r\n\r\n") :])
        self.remaining = plan["chunks"]
        self.pace = plan["pace"]
        self.transport.write(_HEAD)
        asyncio.get_running_loop().call_later(self.pace, self._send)

    def resume_writing(self) -> None:
        if not self.pace:
            self._send()

    def _send(self) -> None:
        if not self.remaining or self.transport.is_closing():
            return
        count = 1 if self.pace else min(self.remaining, 100)
        self.remaining -= count
        for _ in range(count):
            self.transport.write(_CHUNK)
        if not self.remaining:
            self.transport.write(b"0\r\n\r\n")
        elif self.pace or self.transport.get_write_buffer_size() < 65536:
            asyncio.get_running_loop().call_later(self.pace, self._send)


async def _serve(port: Connection) -> None:
    server = await asyncio.get_running_loop().create_server(_Provider, "127.0.0.1", 0)
    port.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()


def _provide(port: Connection) -> None:
    uvloop.run(_serve(port))


async def _stream(upstream: Upstream, url: str, chunks: int, pace: float) -> int:
    """Reads one stream to its end; the number of reads."""
    reads = 0
    body = json.dumps({"chunks": chunks, "pace": pace}).encode()
    async with upstream.open(ProviderRequest("POST", url, {}, body), CONFIG, {}, "bench") as response:
        while await response.read():
            reads += 1
    return reads


async def _measure(client: str, url: str, streams: int, chunks: int, pace: float) -> float:
    """Microseconds of CPU per chunk."""
    async with open_upstream(LiveSettings(Settings(private_ip_enabled=True, upstream=client))) as upstream:
        await _stream(upstream, url, 10, 0)
        before = time.process_time()
        tasks = []
        for _ in range(streams):
            tasks.append(asyncio.create_task(_stream(upstream, url, chunks, pace)))
            if pace:
                await asyncio.sleep(pace / streams)  # each stream with a phase of its own
        await asyncio.gather(*tasks)
        return (time.process_time() - before) * 1e6 / (streams * chunks)


async def _compare(url: str, rounds: int, streams: int, seconds: float) -> list[str]:
    runs = {"paced": (streams, int(seconds / PACE_SECONDS), PACE_SECONDS), "bulk": (BULK_STREAMS, BULK_CHUNKS, 0.0)}
    lines = [f"{'':8}{'aiohttp':>16}{'native':>16}{'ratio':>8}   (microseconds of CPU per chunk, medians)"]
    for name, run in runs.items():
        costs: dict[str, list[float]] = {client: [] for client in CLIENTS}
        for _ in range(rounds):
            for client in CLIENTS:
                costs[client].append(await _measure(client, url, *run))
        aiohttp, native = (statistics.median(costs[client]) for client in CLIENTS)
        lines.append(f"{name:8}{aiohttp:>16.2f}{native:>16.2f}{aiohttp / native:>8.2f}")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--streams", type=int, default=200, help="streams of the paced run")
    parser.add_argument("--seconds", type=float, default=3, help="length of a paced stream")
    options = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    provider = context.Process(target=_provide, args=(theirs,), daemon=True)
    provider.start()
    url = f"http://127.0.0.1:{ours.recv()}/v1/chat/completions"
    lines = uvloop.run(_compare(url, options.rounds, options.streams, options.seconds))
    sys.stdout.write("\n".join(lines) + "\n")
    provider.terminate()
    provider.join()


if __name__ == "__main__":
    main()
